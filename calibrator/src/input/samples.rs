//! Samples of a file or of standard input, told apart by their first bytes.

use std::{
    fs::File,
    io::{self, BufReader, Cursor, Read},
    path::Path,
};

use coterie_locality::{
    npz,
    sample::{Sample, SampleReader},
};
use serde::Serialize;

use super::{domains, gates, reservoir::Reservoir};
use crate::{args::ReadingArgs, error::Error, progress::Progress};

/// Largest `.npz`: archives are read whole.
const MAX_ARCHIVE_BYTES: u64 = 1 << 30;

/// What kind of input it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    /// A container of samples.
    Container,
    /// Calibration data as the ELDR artifact writes them.
    EldrNpz,
    /// A recording of gates.
    GatesNpz,
}

/// Samples in memory.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The samples, in the input's order.
    pub samples: Vec<Sample>,
    /// A label for each, where known.
    pub domains: Option<Vec<String>>,
    /// Samples of the input; more than are here where `--max-samples` left some out.
    pub seen: u64,
    /// What kind of input it was.
    pub form: Form,
}

/// Opens a file, or standard input for `-`.
///
/// # Errors
/// When the file cannot be opened.
pub fn open(path: &Path) -> Result<Box<dyn Read>, Error> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let refused = |error: io::Error| Error::input("SamplesUnreadable", format!("read {}: {error}", path.display()));
    let file = File::open(path).map_err(refused)?;
    if file.metadata().map_err(refused)?.is_dir() {
        return Err(refused(io::Error::other("it is a folder")));
    }
    Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
}

/// Reads at most `most` bytes.
///
/// # Errors
/// When there are more, or reading fails.
pub fn read_bytes(mut input: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    (&mut input).take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("larger than {most} bytes; take a part of it")));
    }
    Ok(bytes)
}

/// Reads samples: at most `--max-samples` of them are kept, a uniform choice by `seed`.
///
/// # Errors
/// When the input is none of the known forms, is damaged, or does not fit its labels.
pub fn load(path: &Path, reading: &ReadingArgs, seed: u64, progress: &Progress) -> Result<Loaded, Error> {
    let labels = reading.domains.as_deref().map(domains::read).transpose()?;
    let mut reservoir = Reservoir::new(reading.max_samples as usize, seed);
    let mut own_labels: Vec<Option<String>> = Vec::new();
    let form = each(open(path)?, path, reading, |sample, label| {
        if label.is_some() {
            own_labels.push(label);
        }
        reservoir.offer(sample);
        progress.tick();
    })?;
    let (kept, seen) = reservoir.finish();
    let own_labels: Option<Vec<String>> = own_labels
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .filter(|l| !l.is_empty());
    let labels = labels.or(own_labels);
    if let Some(labels) = labels.as_ref().filter(|labels| labels.len() as u64 != seen) {
        return Err(Error::input(
            "DomainsDoNotFit",
            format!(
                "{} labels for the {seen} samples of {}; give one label a line, in the order of the samples",
                labels.len(),
                path.display()
            ),
        ));
    }
    if kept.is_empty() {
        return Err(Error::input(
            "NoSamples",
            format!("{} holds no samples", path.display()),
        ));
    }
    let domains = labels.map(|labels| {
        let at = |position: u64| usize::try_from(position).ok().and_then(|at| labels.get(at));
        kept.iter()
            .map(|(position, _)| at(*position).cloned().unwrap_or_default())
            .collect()
    });
    if kept.len() as u64 != seen {
        tracing::warn!(
            kept = kept.len(),
            seen,
            "more samples than --max-samples: a uniform choice is kept"
        );
    }
    Ok(Loaded {
        samples: kept.into_iter().map(|(_, sample)| sample).collect(),
        domains,
        seen,
        form,
    })
}

/// Calls `take` with each sample of `input`, which came from `path`, and its label, where the input has one. A container is streamed, one record in memory.
///
/// # Errors
/// When the input is none of the known forms or is damaged.
pub fn each(
    mut input: Box<dyn Read>,
    path: &Path,
    reading: &ReadingArgs,
    mut take: impl FnMut(Sample, Option<String>),
) -> Result<Form, Error> {
    let refused = |what: String| Error::input("SamplesUnreadable", format!("read {}: {what}", path.display()));
    let mut start = Vec::new();
    (&mut input)
        .take(4)
        .read_to_end(&mut start)
        .map_err(|error| refused(error.to_string()))?;
    let input = Cursor::new(start.clone()).chain(input);
    if start != b"PK\x03\x04" {
        let reader = SampleReader::new(input).map_err(|error| refused(error.to_string()))?;
        for sample in reader {
            take(sample.map_err(|error| refused(error.to_string()))?, None);
        }
        return Ok(Form::Container);
    }
    let bytes = read_bytes(input, MAX_ARCHIVE_BYTES).map_err(|error| refused(error.to_string()))?;
    if gates::is_recording(&bytes) {
        let model = reading.model.clone().ok_or_else(|| needs(path, "--model NAME"))?;
        let recording = gates::Recording::read(&bytes, &model, reading.tokenizer.as_deref())
            .map_err(|error| error.of_file(path))?;
        let mut labels = recording.domains.into_iter().flatten();
        for sample in recording.samples {
            take(sample, labels.next());
        }
        return Ok(Form::GatesNpz);
    }
    let samples = npz::read_calibration(&bytes, reading.model.as_deref(), reading.top_k).map_err(|error| {
        let hint = if reading.top_k.is_none() && error.to_string().contains("top_k") {
            " with --top-k N"
        } else {
            ""
        };
        refused(format!("{error}{hint}"))
    })?;
    if samples
        .first()
        .is_some_and(|sample| sample.fingerprint.model.is_empty())
    {
        return Err(needs(path, "--model NAME"));
    }
    for sample in samples {
        take(sample, None);
    }
    Ok(Form::EldrNpz)
}

fn needs(path: &Path, flag: &str) -> Error {
    Error::usage(
        "BadFlags",
        format!("{} does not name its model: give {flag}", path.display()),
    )
}
