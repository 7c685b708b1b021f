//! Where document, table and workers come from: Kubernetes, or flags and files.

mod apply;
pub(crate) mod files;
pub(crate) mod kubernetes;

pub(crate) use apply::{Applier, TableSource};
