//! TPOT over time.

use serde::Serialize;

use super::percentiles::Percentiles;
use crate::fleet::simulate::{Journey, Outcome, seconds};

/// Requests that came in during one stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// Middle of the stretch, seconds since the start.
    pub at_s: f64,
    /// Their time per output token, milliseconds.
    pub tpot_ms: Percentiles,
}

/// Cuts the run into stretches of `every_s` seconds by arrival; stretches without finished requests are left out.
pub fn timeline(outcome: &Outcome, every_s: f64) -> Vec<Moment> {
    let mut moments: Vec<(u64, Vec<f64>)> = Vec::new();
    for journey in &outcome.journeys {
        let stretch = (seconds(journey.at) / every_s.max(1e-9)) as u64;
        if let Some(tpot) = Journey::tpot_s(journey) {
            match moments.last_mut() {
                Some((last, values)) if *last == stretch => values.push(tpot * 1e3),
                _ => moments.push((stretch, vec![tpot * 1e3])),
            }
        }
    }
    moments
        .into_iter()
        .map(|(stretch, values)| Moment {
            at_s: (stretch as f64 + 0.5) * every_s,
            tpot_ms: Percentiles::of(values),
        })
        .collect()
}
