//! How long a signal must last.

use serde::{Deserialize, Serialize};

use super::judge::{SignalState, Signals};

/// What the drift monitor says of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// No signal is on.
    Stable,
    /// A signal is on, not yet for long enough.
    Suspected,
    /// A signal has been on for `sustain` slides in a row.
    Drifted,
    /// No signal could be judged.
    InsufficientSamples,
}

/// Slides in a row that each signal has been on, under one table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftState {
    digest: String,
    last_slide: Option<u64>,
    fit: u32,
    skew: u32,
    /// First slide of the longest current run of a signal that is on.
    onset: Option<u64>,
}

impl DriftState {
    /// Takes the judgement of the window that ends with `slide`; a slide seen already changes nothing, another table starts afresh.
    /// `sustain` is the number of consecutive slides a signal must be on; 0 is taken as 1.
    pub fn advance(&mut self, digest: &str, slide: u64, signals: &Signals, sustain: u32) -> Verdict {
        if self.digest != digest {
            *self = Self {
                digest: digest.to_owned(),
                ..Self::default()
            };
        }
        if self.last_slide.is_none_or(|last| slide > last) {
            // A gap (operator down, routers unreachable) is no evidence either way: runs are not extended across it.
            let gap = self.last_slide.is_some_and(|last| slide > last.saturating_add(1));
            for (run, state) in [(&mut self.fit, signals.fit.state), (&mut self.skew, signals.skew.state)] {
                *run = match state {
                    SignalState::On if gap => 1,
                    SignalState::On => run.saturating_add(1),
                    _ => 0,
                };
            }
            let longest = u64::from(self.fit.max(self.skew));
            self.onset = (longest > 0).then(|| slide.saturating_sub(longest - 1));
            self.last_slide = Some(slide);
        }
        self.verdict(signals, sustain)
    }

    /// First slide of the current run, for "samples since the onset".
    pub fn onset(&self) -> Option<u64> {
        self.onset
    }

    fn verdict(&self, signals: &Signals, sustain: u32) -> Verdict {
        let longest = self.fit.max(self.skew);
        let judged = |s: SignalState| matches!(s, SignalState::On | SignalState::Off);
        if longest >= sustain.max(1) {
            Verdict::Drifted
        } else if longest > 0 {
            Verdict::Suspected
        } else if judged(signals.fit.state) || judged(signals.skew.state) {
            Verdict::Stable
        } else {
            Verdict::InsufficientSamples
        }
    }
}
