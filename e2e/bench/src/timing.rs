//! Times of repeated calls.

use std::{hint::black_box, time::Instant};

use pulp::Arch;
use serde::Serialize;

/// Seconds of each call, in the order they were made.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Times(Vec<f64>);

impl Times {
    /// Calls `work` with 0, 1, ... `calls` - 1, timing each call by itself.
    pub(crate) fn of<T>(calls: usize, mut work: impl FnMut(usize) -> T) -> Self {
        let time = |call| {
            let start = Instant::now();
            black_box(work(call));
            start.elapsed().as_secs_f64()
        };
        Self((0..calls).map(time).collect())
    }

    /// Times that a peer took of itself.
    pub(crate) fn from_seconds(seconds: Vec<f64>) -> Self {
        Self(seconds)
    }

    /// Adds another round's calls.
    pub(crate) fn add(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// The middle call; the mean of the two middle ones where their number is even. NaN without calls.
    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        let half = sorted.len() / 2;
        match (sorted.get(half.wrapping_sub(1)), sorted.get(half)) {
            (Some(below), Some(above)) if sorted.len().is_multiple_of(2) => f64::midpoint(*below, *above),
            (_, Some(middle)) => *middle,
            _ => f64::NAN,
        }
    }

    /// The call that 99 of 100 are not slower than. NaN without calls.
    pub(crate) fn p99(&self) -> f64 {
        let sorted = self.sorted();
        let rank = (sorted.len() as f64 * 0.99).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

/// Times of reading this many bytes, in cache, with wide instructions and no arithmetic: what no computation over them can be faster than.
pub(crate) fn read_floor(bytes: usize, calls: usize) -> Times {
    let memory = vec![1u64; bytes / 8];
    Times::of(calls, |_| {
        let memory = black_box(memory.as_slice());
        Arch::new().dispatch(|| memory.iter().fold(0u64, |sum, word| sum ^ word))
    })
}

/// Runs `work` on a pool of this many threads.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
    Ok(rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()?
        .install(work))
}

/// Growth of a cost: the exponent x of cost ~ size^x that fits best, by least squares over the logarithms. `None` with fewer than two
/// different sizes.
pub(crate) fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points.iter().map(|(size, cost)| (size.ln(), cost.ln())).collect();
    let number = logs.len() as f64;
    let (mean_x, mean_y) = logs
        .iter()
        .fold((0.0, 0.0), |(x, y), p| (x + p.0 / number, y + p.1 / number));
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (x, y) in logs {
        covariance += (x - mean_x) * (y - mean_y);
        variance += (x - mean_x) * (x - mean_x);
    }
    (variance > 1e-12).then(|| covariance / variance)
}

/// A time as people say it, with three digits.
pub(crate) fn human(seconds: f64) -> String {
    let digits = |value: f64, unit: &str| match value {
        v if v < 10.0 => format!("{v:.2} {unit}"),
        v if v < 100.0 => format!("{v:.1} {unit}"),
        v => format!("{v:.0} {unit}"),
    };
    match seconds {
        s if s.is_nan() => "-".to_owned(),
        s if s < 1e-3 => digits(s * 1e6, "µs"),
        s if s < 1.0 => digits(s * 1e3, "ms"),
        s => digits(s, "s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_known_times() {
        let times = Times::from_seconds((1..=200).rev().map(f64::from).collect());
        assert_eq!(times.median(), 100.5);
        assert_eq!(times.p99(), 198.0);
        assert!(Times::default().median().is_nan());
        assert_eq!(Times::from_seconds(vec![3.0, 1.0, 2.0]).median(), 2.0);
    }

    #[test]
    fn exponents_of_known_growth() {
        let square: Vec<(f64, f64)> = [1.0, 2.0, 4.0].map(|n| (n, 3.0 * n * n)).to_vec();
        assert!((exponent(&square).unwrap() - 2.0).abs() < 1e-9);
        assert!(exponent(&[(1.0, 1.0), (1.0, 2.0)]).is_none());
    }

    #[test]
    fn times_read_naturally() {
        assert_eq!(human(4.567e-6), "4.57 µs");
        assert_eq!(human(0.1234), "123 ms");
        assert_eq!(human(12.34), "12.3 s");
    }
}
