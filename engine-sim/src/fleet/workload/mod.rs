//! Workloads: when requests arrive, which they are, and how long their answers get.
//!
//! [`Workload::arrivals`] draws everything before a simulation starts, so that all policies see the same arrivals. Times, requests, lengths and
//! sessions come from separate seeded streams: another output length leaves the arrival times as they are.
//!
//! - Times: Poisson, Gamma renewals (bursty for a shape below 1), a two-state modulated Poisson process, day and night (a sine).
//! - Requests: from the recording, by a [`Mix`] of domains over time. Each domain's requests come in random order, none twice before all came once.
//! - Output lengths: fixed, or log-normal (a heavy tail).
//! - Sessions: follow-up turns carry the whole conversation as a shared prefix.
//! - `replay`: the arrivals of a trace file.

mod lengths;
mod mix;
mod process;
mod replay;
mod sessions;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use lengths::OutputLengths;
pub use mix::{Mix, MixPoint};
pub use process::Process;
pub use replay::{MAX_TRACE_LINES, replay};
pub use sessions::Sessions;

use super::chance::stream;
use super::gates::Recording;

/// Most arrivals of a workload.
pub const MAX_ARRIVALS: usize = 50_000_000;

/// One request's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// Seconds since the start.
    pub time_s: f64,
    /// Which request of the recording.
    pub request: usize,
    /// Tokens of its prompt, the shared prefix included.
    pub prompt_tokens: u32,
    /// Tokens it will generate, at least 1.
    pub output_tokens: u32,
    /// Conversation that it belongs to; one of its own without turns.
    pub session: u64,
    /// Tokens at the prompt's start that the session's previous turn has computed; 0 on the first turn.
    pub shared_prefix_tokens: u32,
}

/// Why there are no arrivals.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("workload: {0}")]
pub struct WorkloadError(pub(super) String);

/// What a fleet has to serve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// Requests a second, follow-up turns included, averaged over the process's own ups and downs.
    pub rate: f64,
    /// Seconds during which sessions start; follow-up turns may come later and are cut here too.
    pub duration_s: f64,
    /// When requests arrive.
    #[serde(default)]
    pub process: Process,
    /// Lengths of answers.
    #[serde(default)]
    pub output: OutputLengths,
    /// Conversations.
    #[serde(default)]
    pub sessions: Sessions,
    /// Domains over time.
    #[serde(default)]
    pub mix: Mix,
}

impl Workload {
    /// Poisson arrivals of the recording's own mix with a fixed output length.
    pub fn poisson(rate: f64, duration_s: f64, output_tokens: u32) -> Self {
        Self {
            rate,
            duration_s,
            process: Process::Poisson,
            output: OutputLengths::Fixed { tokens: output_tokens },
            sessions: Sessions::default(),
            mix: Mix::default(),
        }
    }

    /// All arrivals, by time. The same recording, workload and seed give the same ones.
    pub fn arrivals(&self, recording: &Recording, seed: u64) -> Result<Vec<Arrival>, WorkloadError> {
        let positive = |name: &str, value: f64| {
            if value > 0.0 && value.is_finite() {
                Ok(())
            } else {
                Err(WorkloadError(format!("{name} must be above 0, got {value}")))
            }
        };
        positive("rate", self.rate)?;
        positive("durationS", self.duration_s)?;
        if recording.is_empty() {
            return Err(WorkloadError("the recording has no requests".to_owned()));
        }
        if self.rate * self.duration_s > MAX_ARRIVALS as f64 {
            return Err(WorkloadError(format!(
                "{} requests/s for {} s are more than {MAX_ARRIVALS} arrivals",
                self.rate, self.duration_s
            )));
        }
        self.sessions.check()?;
        self.output.check()?;
        let starts = self.process.times(
            self.rate / self.sessions.mean_turns(),
            self.duration_s,
            &mut stream(seed, 0),
        )?;
        let mut picks = self.mix.picker(recording, stream(seed, 1))?;
        let (mut lengths, mut turns) = (stream(seed, 2), stream(seed, 3));
        let mut arrivals = Vec::with_capacity(starts.len());
        for (session, start) in starts.into_iter().enumerate() {
            let mut time_s = start;
            let mut context = 0u32;
            let first = picks.pick(time_s)?;
            let count = self.sessions.turns(&mut turns);
            for turn in 0..count {
                // A follow-up is of the same kind: the same domains, so that a session's gates belong together.
                let request = if turn == 0 { first } else { picks.pick_like(first) };
                let output_tokens = self
                    .output
                    .draw(&mut lengths, recording.requests[request].decode.tokens());
                let own = recording.requests[request].prompt_tokens;
                let prompt_tokens = context.saturating_add(own);
                if time_s < self.duration_s {
                    arrivals.push(Arrival {
                        time_s,
                        request,
                        prompt_tokens,
                        output_tokens,
                        session: session as u64,
                        shared_prefix_tokens: context,
                    });
                }
                context = prompt_tokens.saturating_add(output_tokens);
                time_s += self.sessions.pause(&mut turns, output_tokens);
            }
        }
        arrivals.sort_by(|a, b| a.time_s.total_cmp(&b.time_s).then(a.session.cmp(&b.session)));
        Ok(arrivals)
    }
}
