//! The fleet's mechanics: prefill, hand-off, decode steps, routers' views, faults. Event by event, one thread, no chance but seeds.

mod activity;
mod decode;
mod events;
mod journey;
#[cfg(test)]
mod laws_tests;
mod options;
mod prefill;
mod refit;
mod router;
mod run;
mod tally;
#[cfg(test)]
pub(crate) mod testing;
mod view;

pub use activity::Activity;
pub use decode::{DecodeOptions, StepCount};
pub use events::{Nanos, nanos, seconds};
pub use journey::{End, Journey};
pub use options::{Change, Choice, FirstToken, FleetOptions, ScriptLine};
pub use prefill::PrefillOptions;
pub use refit::Refit;
pub use router::{Knowledge, Steering};
pub use run::{Outcome, Setup, simulate};
pub use tally::Tally;
pub use view::Visibility;
