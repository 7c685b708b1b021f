//! Table files.

use std::{fs, path::Path};

use coterie_locality::{
    CentroidTable,
    table::{self as codec, MAX_TABLE_BYTES},
};

use crate::error::Error;

/// A table and the bytes it came from.
#[derive(Clone, Debug)]
pub struct TableFile {
    /// The table.
    pub table: CentroidTable,
    /// Digest of the bytes.
    pub digest: String,
    /// Number of the bytes.
    pub bytes: usize,
}

impl TableFile {
    /// Decodes and checks a table.
    ///
    /// # Errors
    /// When the bytes are not a table.
    pub fn decode(payload: &[u8]) -> Result<Self, codec::TableError> {
        Ok(Self {
            table: CentroidTable::decode(payload)?,
            digest: codec::digest(payload),
            bytes: payload.len(),
        })
    }
}

/// Reads a table.
///
/// # Errors
/// When the file cannot be read or is not a table.
pub fn table(path: &Path) -> Result<TableFile, Error> {
    let refused = |what: String| Error::input("TableUnreadable", format!("read table {}: {what}", path.display()));
    let size = fs::metadata(path).map_err(|error| refused(error.to_string()))?.len();
    if size > MAX_TABLE_BYTES {
        return Err(refused(format!("{size} bytes, more than a table can have")));
    }
    let payload = fs::read(path).map_err(|error| refused(error.to_string()))?;
    TableFile::decode(&payload).map_err(|error| {
        let eldr = payload.first() == Some(&b'{');
        let hint = if eldr {
            "; it looks like ELDR's JSON: run `import` on it first"
        } else {
            ""
        };
        refused(format!("{error}{hint}"))
    })
}
