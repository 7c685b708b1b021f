//! The subcommands.

mod collect;
mod convert;
mod diff;
mod evaluate;
mod exchange;
mod fit;
mod inspect;
mod run;

pub use collect::collect;
pub use convert::convert;
pub use diff::diff;
pub use evaluate::evaluate;
pub use exchange::{export, import};
pub use fit::fit;
pub use inspect::inspect;
pub use run::run;
