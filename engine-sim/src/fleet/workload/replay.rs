//! Arrivals from a trace file.

use std::collections::HashMap;

use super::super::chance::stream;
use super::{Arrival, Mix, WorkloadError};
use crate::fleet::gates::Recording;

/// Most lines of a trace that are read.
pub const MAX_TRACE_LINES: usize = 10_000_000;

/// Arrivals of a trace: comma-separated values under a line of column names. `time_s` (seconds) is needed; `prompt_tokens`, `output_tokens`,
/// `domain`, `session` and `shared_prefix_tokens` may be there, in any order. What is missing comes from the recording: a request of
/// the domain, drawn with the seed, with its own lengths. Times count from the first line, divided by `speed`.
pub fn replay(text: &str, recording: &Recording, speed: f64, seed: u64) -> Result<Vec<Arrival>, WorkloadError> {
    if !(speed > 0.0 && speed.is_finite()) {
        return Err(WorkloadError(format!("speed must be above 0, got {speed}")));
    }
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, header) = lines
        .next()
        .ok_or_else(|| WorkloadError("the trace is empty".to_owned()))?;
    let columns: HashMap<&str, usize> = header.split(',').map(str::trim).zip(0..).collect();
    if !columns.contains_key("time_s") {
        return Err(WorkloadError(
            "the trace's first line names no column time_s (seconds)".to_owned(),
        ));
    }
    let mixes: HashMap<&str, Mix> = recording
        .domain_names
        .iter()
        .map(|name| (name.as_str(), Mix::fixed([(name.as_str(), 1.0)])))
        .collect();
    let any = Mix::default();
    let mut all = any.picker(recording, stream(seed, 1))?;
    let mut pickers = HashMap::new();
    for (name, mix) in &mixes {
        let at = u64::from(recording.find_domain(name).unwrap_or_default());
        pickers.insert(*name, mix.picker(recording, stream(seed, 16 + at))?);
    }
    let mut arrivals: Vec<Arrival> = Vec::new();
    for (number, line) in lines {
        if arrivals.len() == MAX_TRACE_LINES {
            return Err(WorkloadError(format!(
                "the trace has more than {MAX_TRACE_LINES} lines"
            )));
        }
        let wrong = |what: &str| WorkloadError(format!("line {} of the trace: {what}", number + 1));
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let field = |name: &str| {
            let at = columns.get(name)?;
            fields.get(*at).copied().filter(|f| !f.is_empty())
        };
        let time_s: f64 = field("time_s")
            .and_then(|f| f.parse().ok())
            .filter(|t: &f64| t.is_finite())
            .ok_or_else(|| wrong("time_s is no number of seconds"))?;
        let count = |name: &str| -> Result<Option<u32>, WorkloadError> {
            field(name)
                .map(|f| f.parse().map_err(|_| wrong(&format!("{name} is no whole number"))))
                .transpose()
        };
        let request = match field("domain") {
            None => all.pick(0.0)?,
            Some(name) => pickers
                .get_mut(name)
                .ok_or_else(|| wrong(&format!("the recording has no domain {name:?}")))?
                .pick(0.0)?,
        };
        let gates = &recording.requests[request];
        let recorded = u32::try_from(gates.decode.tokens()).unwrap_or(u32::MAX);
        let session = field("session").map(|f| f.parse().map_err(|_| wrong("session is no whole number")));
        let prompt_tokens = count("prompt_tokens")?.unwrap_or(gates.prompt_tokens).max(1);
        arrivals.push(Arrival {
            time_s,
            request,
            prompt_tokens,
            output_tokens: count("output_tokens")?.unwrap_or(recorded).max(1),
            session: session.transpose()?.unwrap_or(arrivals.len() as u64),
            shared_prefix_tokens: count("shared_prefix_tokens")?.unwrap_or(0).min(prompt_tokens),
        });
    }
    let start = arrivals.iter().map(|a| a.time_s).fold(f64::INFINITY, f64::min);
    for arrival in &mut arrivals {
        arrival.time_s = (arrival.time_s - start) / speed;
    }
    arrivals.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
    Ok(arrivals)
}
