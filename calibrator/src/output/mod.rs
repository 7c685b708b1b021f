//! What a command gives back, and files that appear whole or not at all.

mod atomic;

use std::path::PathBuf;

use coterie_locality::sample::{Sample, SampleWriter};
use tokio_util::sync::CancellationToken;

pub use atomic::Atomic;

use crate::error::Error;

/// What a command has to say and to write. Nothing is written before all of it is known, so that an interrupted command leaves no file.
#[derive(Debug, Default)]
pub struct Done {
    /// For standard output; nothing is printed for an empty one.
    pub text: String,
    /// Files to write.
    pub files: Vec<(PathBuf, Content)>,
}

/// Content of a file.
#[derive(Debug)]
pub enum Content {
    /// Bytes.
    Bytes(Vec<u8>),
    /// A container of samples.
    Samples(Vec<Sample>),
}

impl From<String> for Done {
    fn from(text: String) -> Self {
        Self {
            text,
            files: Vec::new(),
        }
    }
}

impl Done {
    /// Writes the files, each whole or not at all.
    ///
    /// # Errors
    /// When a file cannot be written, or a signal ended it.
    pub fn save(&self, stop: &CancellationToken) -> Result<(), Error> {
        for (path, content) in &self.files {
            let failed = |what: &dyn std::fmt::Display| {
                Error::infrastructure("WriteFailed", format!("write {}: {what}", path.display()))
            };
            let mut file = Atomic::create(path).map_err(|error| failed(&error))?;
            match content {
                Content::Bytes(bytes) => {
                    use std::io::Write;
                    file.write_all(bytes).map_err(|error| failed(&error))?;
                }
                Content::Samples(samples) => {
                    let mut writer = SampleWriter::new(&mut file).map_err(|error| failed(&error))?;
                    for sample in samples {
                        if stop.is_cancelled() {
                            return Err(Error::Interrupted);
                        }
                        writer.write(sample).map_err(|error| failed(&error))?;
                    }
                    writer.finish().map_err(|error| failed(&error))?;
                }
            }
            file.commit().map_err(|error| failed(&error))?;
        }
        Ok(())
    }
}
