//! Percentiles by linear interpolation between order statistics, as numpy computes them.

use serde::Serialize;

/// Of a set of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Number of values.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl Percentiles {
    /// Sorts the values; all zero without any.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len() as u64;
        Self {
            count,
            mean: values.iter().sum::<f64>() / count.max(1) as f64,
            p50: quantile(&values, 0.5),
            p95: quantile(&values, 0.95),
            p99: quantile(&values, 0.99),
        }
    }
}

/// Quantile of ascending values; 0 without any.
pub fn quantile(ascending: &[f64], q: f64) -> f64 {
    let at = q.clamp(0.0, 1.0) * ascending.len().saturating_sub(1) as f64;
    let (below, above) = (at.floor() as usize, at.ceil() as usize);
    match (ascending.get(below), ascending.get(above)) {
        (Some(low), Some(high)) => low + (high - low) * at.fract(),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolates_as_numpy_does() {
        let p = Percentiles::of(vec![4.0, 2.0, 1.0, 3.0]);
        assert_eq!((p.count, p.mean, p.p50), (4, 2.5, 2.5));
        assert!((p.p95 - 3.85).abs() < 1e-12 && (p.p99 - 3.97).abs() < 1e-12);
        assert_eq!(Percentiles::of(Vec::new()), Percentiles::default());
    }
}
