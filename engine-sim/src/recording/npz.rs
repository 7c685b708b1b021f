//! `.npz`: a zip archive of `.npy` members, read with a limit on each.

use std::io::{Cursor, Read};

use zip::ZipArchive;

const MAX_MEMBER: u64 = 512 << 20;

/// An open archive.
pub(crate) struct Npz<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
}

impl<'a> Npz<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, String> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| e.to_string())?;
        Ok(Self { archive })
    }

    /// Whether there is a member `{name}.npy`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.archive.index_for_name(&format!("{name}.npy")).is_some()
    }

    /// The bytes of the member `{name}.npy`.
    pub(crate) fn member(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let file = self
            .archive
            .by_name(&format!("{name}.npy"))
            .map_err(|e| format!("array {name:?}: {e}"))?;
        let mut bytes = Vec::new();
        let read = file
            .take(MAX_MEMBER + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| format!("array {name:?}: {e}"))?;
        if read as u64 > MAX_MEMBER {
            return Err(format!("array {name:?} is larger than {MAX_MEMBER} bytes"));
        }
        Ok(bytes)
    }
}
