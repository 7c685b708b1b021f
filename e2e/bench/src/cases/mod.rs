//! What is measured, one file each.

mod assignment;
mod counts;
pub(crate) mod fit;
mod kmeans;
mod route;
mod signatures;

use crate::suite::Suite;

type Case = fn(&mut Suite) -> anyhow::Result<()>;

/// The names that `--only` takes.
pub(crate) const NAMES: [&str; 5] = ["route", "counts", "assignment", "kmeans", "fit"];

/// All cases, in the order of [`NAMES`].
pub(crate) const ALL: [(&str, Case); 5] = [
    (NAMES[0], route::run),
    (NAMES[1], counts::run),
    (NAMES[2], assignment::run),
    (NAMES[3], kmeans::run),
    (NAMES[4], fit::run),
];
