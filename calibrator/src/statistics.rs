//! Means with their standard errors.

use serde::Serialize;

/// A mean over independent repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Its standard error; 0 of fewer than two repeats.
    pub standard_error: f64,
}

impl Mean {
    /// Mean of these values, to nine decimals.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n.max(1.0);
        let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        let rounded = |value: f64| (value * 1e9).round() / 1e9;
        Self {
            mean: rounded(mean),
            standard_error: rounded((squares / (n - 1.0).max(1.0) / n.max(1.0)).sqrt()),
        }
    }
}

impl std::fmt::Display for Mean {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} +- {:.2}", self.mean, self.standard_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_its_error() {
        let mean = Mean::of([1.0, 2.0, 3.0, 4.0]);
        assert_eq!((mean.mean, mean.standard_error), (2.5, 0.645_497_224));
        assert_eq!(
            Mean::of([7.0]),
            Mean {
                mean: 7.0,
                standard_error: 0.0
            }
        );
        assert_eq!(Mean::of([1.0, 2.0]).to_string(), "1.50 +- 0.50");
    }
}
