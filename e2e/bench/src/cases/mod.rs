//! What is measured, one file each.

mod assignment;
mod counts;
pub(crate) mod fit;
mod kmeans;
mod predictor;
mod route;
mod signatures;

use crate::suite::Suite;

type Case = fn(&mut Suite) -> anyhow::Result<()>;

/// The names that `--only` takes.
pub(crate) const NAMES: [&str; 7] = [
    "route",
    "counts",
    "assignment",
    "kmeans",
    "predictor",
    "fit",
    "fit-large",
];

/// All cases, in the order of [`NAMES`].
pub(crate) const ALL: [(&str, Case); 7] = [
    (NAMES[0], route::run),
    (NAMES[1], counts::run),
    (NAMES[2], assignment::run),
    (NAMES[3], kmeans::run),
    (NAMES[4], predictor::run),
    (NAMES[5], fit::run),
    (NAMES[6], fit::run_large),
];
