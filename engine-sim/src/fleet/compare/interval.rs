//! Mean and confidence interval of a few values.

use serde::Serialize;

/// Mean with the half-width of its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Interval {
    /// Mean.
    pub mean: f64,
    /// Half-width; 0 with fewer than two values.
    pub half_width: f64,
}

impl Interval {
    /// Of independent values.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        if values.is_empty() {
            return Self::default();
        }
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0).max(1.0);
        let half_width = if values.len() < 2 {
            0.0
        } else {
            student_t(values.len() - 1) * (variance / n).sqrt()
        };
        Self { mean, half_width }
    }
}

/// Two-sided 95 % quantile of Student's t.
fn student_t(freedom: usize) -> f64 {
    const SMALL: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    SMALL
        .get(freedom.saturating_sub(1))
        .copied()
        .unwrap_or(1.96 + 2.5 / freedom as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_known_values() {
        let interval = Interval::of(&[1.0, 2.0, 3.0]);
        assert_eq!(interval.mean, 2.0);
        assert!((interval.half_width - 4.303 / 3f64.sqrt()).abs() < 1e-9);
        assert_eq!(Interval::of(&[5.0]).half_width, 0.0);
        assert!((student_t(1000) - 1.9625).abs() < 0.001);
    }
}
