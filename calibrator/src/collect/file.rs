//! Files of samples.

use std::{
    fs::File,
    io::{BufReader, BufWriter, Write},
    path::Path,
};

use coterie_locality::sample::{Sample, SampleReader, SampleWriter};

use crate::error::Error;

/// Most samples that a fit takes from a file.
const MAX_SAMPLES: usize = 1_000_000;

/// Writes samples to a file, replacing it.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, samples: &[Sample]) -> Result<(), Error> {
    let failed = |what: String| Error::infrastructure("WriteFailed", format!("write {}: {what}", path.display()));
    let file = File::create(path).map_err(|error| failed(error.to_string()))?;
    let mut writer = SampleWriter::new(BufWriter::new(file)).map_err(|error| failed(error.to_string()))?;
    for sample in samples {
        writer.write(sample).map_err(|error| failed(error.to_string()))?;
    }
    let mut file = writer.finish().map_err(|error| failed(error.to_string()))?;
    file.flush().map_err(|error| failed(error.to_string()))
}

/// Reads a file of samples.
///
/// # Errors
/// When the file cannot be read or is not a container of samples.
pub fn read(path: &Path) -> Result<Vec<Sample>, Error> {
    let refused = |what: String| Error::input("SamplesUnreadable", format!("read {}: {what}", path.display()));
    let file = File::open(path).map_err(|error| refused(error.to_string()))?;
    let reader = SampleReader::new(BufReader::new(file)).map_err(|error| refused(error.to_string()))?;
    reader
        .take(MAX_SAMPLES)
        .collect::<Result<_, _>>()
        .map_err(|error| refused(error.to_string()))
}
