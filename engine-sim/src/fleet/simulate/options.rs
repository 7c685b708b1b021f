//! A fleet and what happens to it.

use super::decode::DecodeOptions;
use super::prefill::PrefillOptions;
use super::view::Visibility;
use crate::fleet::law::TransferLaw;

/// When the decode worker is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// After the prefill, by what it activated (source Prefill).
    #[default]
    AfterPrefill,
    /// When the request comes in, by its text (source Text): its place is reserved while it is prefilled.
    AtArrival,
}

/// Who sends the first token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstToken {
    /// The decode worker, after its first step (NIXL as it is).
    #[default]
    Decode,
    /// The prefill worker, at the end of its step (ELDR's engine): the hand-off then counts as time per output token.
    Prefill,
}

/// One change of the fleet, or fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScriptLine {
    /// Seconds since the start.
    pub at_s: f64,
    /// What happens.
    pub change: Change,
}

/// What can happen to decode workers. Workers are numbered in the order they are started, never twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// So many more are started; they take requests once they have loaded.
    Start(u32),
    /// This one dies. Requests that have not answered yet are done again from the prefill on; the others fail.
    Lose(u32),
    /// This one leaves routing and finishes what it has.
    Drain(u32),
    /// Scaled: newest workers drain, or more are started.
    Scale(u32),
}

/// A fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetOptions {
    /// Decode workers at the start.
    pub decode_workers: usize,
    /// What each may hold.
    pub decode: DecodeOptions,
    /// The prefill pool; `None`: plain workers, requests go straight into a batch.
    pub prefill: Option<PrefillOptions>,
    /// KV hand-off; takes no time without a prefill pool.
    pub transfer: TransferLaw,
    /// When the decode worker is chosen.
    pub choice: Choice,
    /// Who sends the first token.
    pub first_token: FirstToken,
    /// How routers learn of each other's requests.
    pub visibility: Visibility,
    /// Seconds until a started worker takes requests.
    pub load_s: f64,
    /// Changes, in order of time.
    pub script: Vec<ScriptLine>,
    /// Attempts that a request gets in all when workers die under it.
    pub attempts: u32,
    /// Requests at the start that are not measured, and at the end.
    pub unmeasured: (usize, usize),
}

impl FleetOptions {
    /// Plain workers, one router that knows everything, nothing ever happens.
    pub fn plain(decode_workers: usize) -> Self {
        Self {
            decode_workers,
            decode: DecodeOptions::default(),
            prefill: None,
            transfer: TransferLaw {
                latency: 0.0,
                bytes_per_token: 0.0,
                bytes_per_second: 1.0,
            },
            choice: Choice::AfterPrefill,
            first_token: FirstToken::Decode,
            visibility: Visibility::OwnOnly,
            load_s: 0.0,
            script: Vec::new(),
            attempts: 3,
            unmeasured: (0, 0),
        }
    }
}
