//! Engine dialects, as two seams: how KV is handed off ([`HandOff`]), and how an answer carries activations ([`Activations`]).

mod activations;
mod answer;
mod handoff;
pub(crate) mod steering;

pub(crate) use activations::{Activations, MissingSignature, NpyActivations};
pub(crate) use answer::PrefillAnswer;
pub(crate) use handoff::{HandOff, Nixl};
