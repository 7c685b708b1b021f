//! Domain labels, one a line, in the order of the samples.

use std::{fs, path::Path};

use crate::error::Error;

/// Largest file of labels.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Reads the labels.
///
/// # Errors
/// When the file cannot be read or has an empty line.
pub fn read(path: &Path) -> Result<Vec<String>, Error> {
    let refused = |what: String| Error::input("DomainsUnreadable", format!("read {}: {what}", path.display()));
    let size = fs::metadata(path).map_err(|error| refused(error.to_string()))?.len();
    if size > MAX_FILE_BYTES {
        return Err(refused(format!("{size} bytes, at most {MAX_FILE_BYTES} are read")));
    }
    let text = fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    let labels: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    match labels.iter().position(String::is_empty) {
        Some(line) => Err(refused(format!(
            "line {} is empty; give one label a line, in the order of the samples",
            line + 1
        ))),
        None => Ok(labels),
    }
}
