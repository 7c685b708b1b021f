//! How a fit went: kept in the table, shown in a run's status.

use serde::{Deserialize, Serialize};

use crate::predictor::PredictorReport;
use crate::table::nine_decimals;

/// Mean distinct experts per layer and decode step of simulated batches, by policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DistinctExperts {
    /// Requests in each simulated batch.
    pub batch: usize,
    /// Requests sent where load is lowest, in order of arrival.
    pub least_loaded: f64,
    /// Requests sent anywhere.
    pub random: f64,
    /// Requests sent by the table.
    pub table: f64,
    /// Requests sent by their known domain, where samples carry one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain_oracle: Option<f64>,
}

impl DistinctExperts {
    /// Predicted fall of distinct experts against `LeastLoaded`, as a fraction (0.1 = 10 % fewer).
    pub fn gain(&self) -> f64 {
        if self.least_loaded > 0.0 {
            1.0 - self.table / self.least_loaded
        } else {
            0.0
        }
    }
}

impl FitReport {
    /// The same numbers to nine decimals, as in [`crate::table::Baselines::rounded`].
    #[must_use]
    pub fn rounded(mut self) -> Self {
        self.objective = nine_decimals(self.objective);
        self.balance = nine_decimals(self.balance);
        self.rho = self.rho.map(nine_decimals);
        self.rho_interval = self.rho_interval.map(|interval| interval.map(nine_decimals));
        self.predicted_gain = self.predicted_gain.map(nine_decimals);
        if let Some(simulated) = &mut self.distinct_experts {
            for value in [&mut simulated.least_loaded, &mut simulated.random, &mut simulated.table] {
                *value = nine_decimals(*value);
            }
            simulated.domain_oracle = simulated.domain_oracle.map(nine_decimals);
        }
        self
    }
}

/// What the fit found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FitReport {
    /// Samples used.
    pub samples: u64,
    /// Of these, samples with decode counts.
    pub decode_samples: u64,
    /// Kept layers.
    pub layers: Vec<u16>,
    /// Clusters asked for.
    pub clusters: u64,
    /// Spearman correlation on held-out samples with decode counts; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rho: Option<f64>,
    /// 95 % interval of `rho`, from resampled requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rho_interval: Option<[f64; 2]>,
    /// Mean similarity of fitted samples to their centroid.
    pub objective: f64,
    /// Busiest cluster's share on held-out samples divided by 1/K.
    pub balance: f64,
    /// Simulated batches of held-out samples; absent without decode counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct_experts: Option<DistinctExperts>,
    /// Predicted fall of distinct experts per step against `LeastLoaded`, as a fraction; absent without decode counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_gain: Option<f64>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Predictors learned by this fit; absent where none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predictors: Option<PredictorReport>,
    /// Whether the table keeps the predictors of the table in use, as too few samples had decode counts to learn new ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub predictors_kept: bool,
    /// Source Text; the fields above are of source Prefill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<SourceReport>,
}

/// How the fit of source Text went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SourceReport {
    /// Samples with text.
    pub samples: u64,
    /// Spearman correlation on held-out samples with decode counts; absent with too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rho: Option<f64>,
    /// 95 % interval of `rho`, from resampled requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rho_interval: Option<[f64; 2]>,
    /// Mean similarity of fitted samples to their centroid.
    pub objective: f64,
    /// Busiest cluster's share on held-out samples divided by 1/K.
    pub balance: f64,
}

impl SourceReport {
    /// The same numbers to nine decimals.
    #[must_use]
    pub fn rounded(mut self) -> Self {
        self.objective = nine_decimals(self.objective);
        self.balance = nine_decimals(self.balance);
        self.rho = self.rho.map(nine_decimals);
        self.rho_interval = self.rho_interval.map(|interval| interval.map(nine_decimals));
        self
    }
}
