//! Tests of the fleet controller's pure parts.

mod document;
mod plan;
mod rollout;
mod status;
