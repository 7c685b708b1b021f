//! The subcommands.

mod files;
mod run;

pub use files::{collect, fit, inspect};
pub use run::run;

use std::time::{Duration, Instant};

use coterie_locality::{CentroidTable, Sample, fit as locality_fit};

use crate::error::Error;

/// Fits a table; returns how long it took.
fn fit_table(samples: Vec<Sample>, clusters: usize, seed: u64) -> Result<(CentroidTable, Duration), Error> {
    let begun = Instant::now();
    let options = locality_fit::FitOptions {
        clusters,
        seed,
        ..locality_fit::FitOptions::default()
    };
    let (table, _) =
        locality_fit::fit(&samples, &options, None).map_err(|error| Error::input("FitFailed", error.to_string()))?;
    Ok((table, begun.elapsed()))
}
