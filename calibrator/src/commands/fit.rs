//! `fit`: samples to a table file.

use std::time::Instant;

use coterie_locality::{FitOptions, Sample, fit as locality_fit, fit::FitError, table::CentroidTable};

use crate::{
    args::FitArgs,
    error::Error,
    input::{self, TableFile},
    output::{Content, Done},
    progress::Progress,
    summary::{self, TableSummary},
};

/// Fits a table to a file of samples.
///
/// # Errors
/// See [`Error`].
pub fn fit(args: &FitArgs) -> Result<Done, Error> {
    let options = args.fitting.options(args.clusters)?;
    let previous = args.previous.as_deref().map(input::table).transpose()?;
    let read = Progress::spinner("reading samples", args.json);
    let loaded = input::load(&args.input.samples, &args.input.reading, options.seed, &read)?;
    drop(read);
    let fitting = Progress::spinner("fitting", args.json);
    tracing::info!(samples = loaded.samples.len(), clusters = options.clusters, "fitting");
    let begun = Instant::now();
    let table = fit_samples(&loaded.samples, &options, previous.as_ref().map(|file| &file.table))?;
    let seconds = begun.elapsed().as_secs_f64();
    drop(fitting);
    let (used, given) = (table.report.samples, loaded.samples.len() as u64);
    if used < given {
        tracing::warn!(
            "{} of {given} samples were left out: no prefill counts, or weight 0",
            given - used
        );
    }
    let payload = encode(&table, args.precision.into())?;
    // What is told is what the file holds, rounding included.
    let file = TableFile::decode(&payload).map_err(|error| Error::infrastructure("EncodeFailed", error.to_string()))?;
    let told = TableSummary::of(&file, Some(seconds));
    Ok(Done {
        text: if args.json { summary::json(&told) } else { told.text() },
        files: vec![(args.out.clone(), Content::Bytes(payload))],
    })
}

/// Bytes of a table.
///
/// # Errors
/// When the table is unsound, which a fitted or decoded one is not.
pub(super) fn encode(table: &CentroidTable, precision: coterie_locality::table::Precision) -> Result<Vec<u8>, Error> {
    table
        .encode(precision)
        .map_err(|error| Error::infrastructure("EncodeFailed", error.to_string()))
}

/// Fits a table.
///
/// # Errors
/// When the samples do not suffice or an option is out of range.
pub(super) fn fit_samples(
    samples: &[Sample],
    options: &FitOptions,
    previous: Option<&CentroidTable>,
) -> Result<CentroidTable, Error> {
    match locality_fit::fit(samples, options, previous) {
        Ok((table, _)) => Ok(table),
        Err(error @ FitError::Options(_)) => Err(Error::usage("BadFlags", error.to_string())),
        Err(error) => Err(Error::input("FitFailed", error.to_string())),
    }
}
