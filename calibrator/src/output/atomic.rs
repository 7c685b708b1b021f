//! A file that takes its name only when it is complete.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// Writes beside the named file and renames at the end. Dropped before [`Self::commit`], it leaves nothing. A pipe or device is written directly.
#[derive(Debug)]
pub struct Atomic {
    file: BufWriter<File>,
    /// The unfinished file and the name it is to get; absent once committed, and for what is no regular file.
    pending: Option<(PathBuf, PathBuf)>,
}

impl Atomic {
    /// Starts the file.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        let existing = fs::metadata(path).ok();
        if existing
            .as_ref()
            .is_some_and(|found| !found.is_file() && !found.is_dir())
        {
            let file = File::options().write(true).open(path)?;
            return Ok(Self {
                file: BufWriter::new(file),
                pending: None,
            });
        }
        // A link keeps pointing where it did; its target is replaced.
        let target = if existing.is_some() {
            fs::canonicalize(path)?
        } else {
            path.to_owned()
        };
        let Some(name) = target.file_name().filter(|_| !target.is_dir()) else {
            return Err(io::Error::other("it is a folder, not a file"));
        };
        let mut partial = name.to_owned();
        partial.push(format!(".{}.partial", std::process::id()));
        let partial = target.with_file_name(partial);
        Ok(Self {
            file: BufWriter::with_capacity(1 << 20, File::create(&partial)?),
            pending: Some((partial, target)),
        })
    }

    /// Completes the file.
    ///
    /// # Errors
    /// When what was written does not reach the disk, or the name cannot be given.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.flush()?;
        if let Some((partial, target)) = &self.pending {
            self.file.get_ref().sync_all()?;
            fs::rename(partial, target)?;
            self.pending = None;
        }
        Ok(())
    }
}

impl Write for Atomic {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Atomic {
    fn drop(&mut self) {
        if let Some((partial, _)) = &self.pending {
            // Nothing is lost when it is gone already.
            let _ = fs::remove_file(partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let names = || fs::read_dir(folder.path()).unwrap().count();
        let mut dropped = Atomic::create(&path).unwrap();
        dropped.write_all(b"half").unwrap();
        assert!(!path.exists());
        drop(dropped);
        assert_eq!(names(), 0);
        for content in ["one", "two"] {
            let mut file = Atomic::create(&path).unwrap();
            file.write_all(content.as_bytes()).unwrap();
            file.commit().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(names(), 1);
        assert!(Atomic::create(folder.path()).is_err());
        assert!(Atomic::create(&folder.path().join("no/such")).is_err());
    }

    #[test]
    fn links_stay_and_devices_are_written_directly() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut file = Atomic::create(&link).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let mut null = Atomic::create(Path::new("/dev/null")).unwrap();
        null.write_all(b"gone").unwrap();
        null.commit().unwrap();
    }
}
