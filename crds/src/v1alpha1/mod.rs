//! The custom resources of `coterie.dev/v1alpha1`.

#![allow(
    unreachable_pub,
    reason = "KubeSchema derives helper items that are pub inside private scopes"
)]

mod deployment;
mod run;
mod table;

pub use deployment::*;
pub use run::*;
pub use table::*;
