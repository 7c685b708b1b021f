//! What ELDR's artifact reports for Qwen3-30B-A3B, 8 prefill and 16 decode GPUs (camera-ready runs of October 2026: online re-fit every second,
//! one run a cell, no intervals).

use crate::fleet::steering::Rule;

/// Milliseconds at one rate.
pub(super) struct Rate {
    /// Requests a second.
    pub(super) per_s: f64,
    /// TPOT of round robin, p50 and p99.
    pub(super) round_robin: [f64; 2],
    /// The same of ELDR.
    pub(super) eldr: [f64; 2],
    /// Median time to first token of round robin, where given.
    pub(super) ttft: Option<f64>,
}

const fn rate(per_s: f64, round_robin: [f64; 2], eldr: [f64; 2], ttft: Option<f64>) -> Rate {
    Rate {
        per_s,
        round_robin,
        eldr,
        ttft,
    }
}

/// Task mix.
pub(super) const TASK: [Rate; 5] = [
    rate(20.0, [15.25, 16.29], [13.05, 15.54], Some(59.8)),
    rate(40.0, [18.82, 21.26], [16.39, 19.38], None),
    rate(60.0, [26.82, 27.57], [22.62, 25.58], None),
    rate(80.0, [25.53, 26.70], [23.56, 26.14], None),
    rate(100.0, [25.12, 26.06], [21.75, 24.71], Some(69.8)),
];

/// Language mix.
pub(super) const LANGUAGE: [Rate; 5] = [
    rate(20.0, [15.60, 16.46], [13.80, 15.79], None),
    rate(40.0, [19.11, 21.45], [17.29, 20.38], None),
    rate(60.0, [26.98, 27.79], [23.78, 26.22], None),
    rate(80.0, [25.60, 26.84], [24.31, 27.23], None),
    rate(100.0, [25.76, 26.47], [22.90, 25.57], None),
];

/// Change against round robin in percent, mean of the rates, p50 and p99 where given.
pub(super) type Change = (Rule, [Option<f64>; 2]);

/// Of the others, task mix.
pub(super) const TASK_OTHERS: [Change; 4] = [
    (Rule::Random, [Some(0.9), Some(9.3)]),
    (Rule::LeastLoaded, [Some(1.1), None]),
    (Rule::PowerOfTwoChoices, [Some(1.2), None]),
    (Rule::DomainOracle, [Some(-11.1), Some(-6.6)]),
];

/// Of the others, language mix.
pub(super) const LANGUAGE_OTHERS: [Change; 4] = [
    (Rule::Random, [Some(0.1), Some(9.2)]),
    (Rule::LeastLoaded, [Some(0.8), None]),
    (Rule::PowerOfTwoChoices, [Some(0.3), None]),
    (Rule::DomainOracle, [Some(-2.1), Some(2.1)]),
];

impl Rate {
    /// ELDR against round robin in percent, p50 and p99.
    pub(super) fn change(&self) -> [f64; 2] {
        [0, 1].map(|i| (self.eldr[i] / self.round_robin[i] - 1.0) * 100.0)
    }
}

/// ELDR against round robin in percent, mean of the rates, p50 and p99.
pub(super) fn mean_change(rates: &[Rate]) -> [f64; 2] {
    [0, 1].map(|i| rates.iter().map(|r| r.change()[i]).sum::<f64>() / rates.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_those_published() {
        let near = |rates: &[Rate], p50: f64, p99: f64| {
            let [a, b] = mean_change(rates);
            assert!((a - p50).abs() < 0.06 && (b - p99).abs() < 0.06, "{a} {b}");
        };
        near(&TASK, -12.8, -5.6);
        near(&LANGUAGE, -9.8, -3.3);
    }
}
