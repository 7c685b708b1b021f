//! The engine: one thread that owns the KV cache and runs prefill and decode steps, and the handle by which the rest talks to it.

mod clock;
mod compute;
mod core;
mod delivery;
mod handle;
mod histogram;
mod output;
mod pace;
mod request;
mod stats;

pub use clock::{Clock, ManualClock, SystemClock};
pub use compute::Assets;
pub use handle::{Engine, EngineHandle, EngineOptions, EngineSnapshot};
pub use histogram::Histogram;
pub use pace::{PrefillLaw, StepLaw};
pub use request::{Event, ExpertRows, Finish, FinishReason, KvIntent, Limits, StopReason, Submission, Token};
pub use stats::{EngineMetrics, SimStats};
