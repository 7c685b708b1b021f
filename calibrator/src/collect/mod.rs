//! Samples of a fleet's traffic.
//!
//! - [`prompts`]: reading the given prompts;
//! - [`probe`]: generating and replaying them on engines that return routed experts;
//! - [`answer`]: token ids and experts from an engine's answer;
//! - [`live`]: the routers' reservoirs.

pub mod answer;
pub mod live;
pub mod probe;
pub mod prompts;
