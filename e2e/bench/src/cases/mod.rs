//! What is measured, one file each.

mod assignment;
mod choose;
mod counts;
pub(crate) mod fit;
mod kmeans;
mod predictor;
mod route;
mod signatures;

use crate::suite::Suite;

type Case = fn(&mut Suite) -> anyhow::Result<()>;

/// The names that `--only` takes.
pub(crate) const NAMES: [&str; 8] = [
    "route",
    "choose",
    "counts",
    "assignment",
    "kmeans",
    "predictor",
    "fit",
    "fit-large",
];

/// All cases, in the order of [`NAMES`].
pub(crate) const ALL: [(&str, Case); 8] = [
    (NAMES[0], route::run),
    (NAMES[1], choose::run),
    (NAMES[2], counts::run),
    (NAMES[3], assignment::run),
    (NAMES[4], kmeans::run),
    (NAMES[5], predictor::run),
    (NAMES[6], fit::run),
    (NAMES[7], fit::run_large),
];
