//! Centroid tables: what a calibration run publishes and routers route by. Immutable; identified by the digest of the encoded bytes.

mod chunks;
mod codec;
#[cfg(test)]
mod codec_tests;
mod predictors;
mod source;

use serde::{Deserialize, Serialize};

pub use chunks::{CHUNK_BYTES, chunk, digest, join};
pub use codec::{FORMAT_VERSION, MAX_HEADER_BYTES, MAX_TABLE_BYTES, Precision};
pub use source::{SourceView, TextSource};

use crate::fit::FitReport;
use crate::geometry::Geometry;
use crate::predictor::Predictors;
use crate::sample::Source;
use crate::transform::Transform;

/// Most clusters of a table.
pub const MAX_CLUSTERS: usize = 1024;
/// How far a centroid's norm may be from 1, as in ELDR.
pub const NORM_TOLERANCE: f32 = 1e-3;

/// What a table or sample is valid for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fingerprint {
    /// Model name as the engines know it.
    pub model: String,
    /// Layers, experts and experts per token.
    pub geometry: Geometry,
    /// Model revision, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Weight type, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
}

impl Fingerprint {
    /// A fingerprint without revision and weight type.
    pub fn new(model: impl Into<String>, geometry: Geometry) -> Self {
        Self {
            model: model.into(),
            geometry,
            revision: None,
            dtype: None,
        }
    }

    /// Whether something made for `self` may be used for `other`: model and geometry are equal, and so are revision and weight type
    /// where both sides know them.
    pub fn matches(&self, other: &Self) -> bool {
        let agree = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
        self.model == other.model
            && self.geometry == other.geometry
            && agree(&self.revision, &other.revision)
            && agree(&self.dtype, &other.dtype)
    }
}

/// What held-out traffic looked like when the table was made: the drift monitor compares live traffic with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Baselines {
    /// Requests behind these numbers.
    pub requests: u64,
    /// Mean similarity of a signature to its nearest centroid, 0..1.
    pub fit_mean: f64,
    /// Standard error of `fit_mean`.
    pub fit_se: f64,
    /// Busiest cluster's share divided by 1/K; 1 = balanced.
    pub skew: f64,
    /// Share of the requests nearest to each centroid; K values that add up to 1.
    pub cluster_shares: Vec<f64>,
    /// Spearman correlation of signature distance and decode distance; absent without decode counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rho: Option<f64>,
    /// Standard error of `rho`, from resampled requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rho_se: Option<f64>,
}

impl Baselines {
    fn validate(&self, clusters: usize) -> Result<(), TableError> {
        let shares_fit = self.cluster_shares.is_empty() || self.cluster_shares.len() == clusters;
        let (rho, rho_se) = (self.rho.unwrap_or(0.0), self.rho_se.unwrap_or(0.0));
        let numbers = [self.fit_mean, self.fit_se, self.skew, rho, rho_se];
        let sound = numbers.iter().chain(&self.cluster_shares).all(|v| v.is_finite())
            && self.cluster_shares.iter().all(|s| (0.0..=1.0).contains(s));
        if shares_fit && sound {
            Ok(())
        } else {
            Err(TableError::Invalid(
                "baselines do not fit the clusters or are not finite".into(),
            ))
        }
    }

    /// The same numbers to nine decimals: they have no more to say, and their JSON reads back to exactly the same values.
    #[must_use]
    pub fn rounded(mut self) -> Self {
        for value in [&mut self.fit_mean, &mut self.fit_se, &mut self.skew] {
            *value = nine_decimals(*value);
        }
        for share in &mut self.cluster_shares {
            *share = nine_decimals(*share);
        }
        self.rho = self.rho.map(nine_decimals);
        self.rho_se = self.rho_se.map(nine_decimals);
        self
    }
}

/// Rounds to nine decimals.
pub(crate) fn nine_decimals(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

/// A centroid table.
#[derive(Clone, Debug, PartialEq)]
pub struct CentroidTable {
    /// Version of the table's meaning: 1, or 2 with predictors or a text source.
    pub version: u32,
    /// Model it is valid for.
    pub fingerprint: Fingerprint,
    /// Counts to signature.
    pub transform: Transform,
    /// Unit vectors, K x D row-major.
    pub centroids: Vec<f32>,
    /// Width of the locality band in cosine units: a quantile of held-out score gaps.
    pub tau: f32,
    /// Held-out statistics.
    pub baselines: Baselines,
    /// How the fit went.
    pub report: FitReport,
    /// What decode frequencies to expect of a request; absent without enough decode counts.
    pub predictors: Option<Predictors>,
    /// Centroids of source Text; the fields above are of source Prefill. See [`Self::source`].
    pub text: Option<TextSource>,
}

/// Why a table was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The bytes are not a table of a known format.
    #[error("centroid table: {0}")]
    Malformed(String),
    /// Larger than any table may be.
    #[error("centroid table: {what} of {got} exceeds the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Size found or announced.
        got: u64,
        /// The limit.
        limit: u64,
    },
    /// Parts that contradict each other.
    #[error("centroid table: {0}")]
    Invalid(String),
    /// The joined chunks are not the table that was asked for.
    #[error("centroid table: digest {got} does not match {expected}; a chunk is missing, changed or out of order")]
    Digest {
        /// Digest of the bytes.
        got: String,
        /// Digest asked for.
        expected: String,
    },
}

impl CentroidTable {
    /// Number of clusters K.
    pub fn clusters(&self) -> usize {
        self.centroids.len() / self.transform.dim()
    }

    /// Centroid of one cluster; `None` when there is no such cluster.
    pub fn centroid(&self, cluster: usize) -> Option<&[f32]> {
        let dim = self.transform.dim();
        self.centroids
            .get(cluster.checked_mul(dim)?..cluster.checked_add(1)?.checked_mul(dim)?)
    }

    /// Traffic share of each cluster of source Prefill: the held-out one, or 1/K each where the table has none.
    pub fn cluster_shares(&self) -> Vec<f64> {
        self.source(Source::Prefill)
            .map(|s| s.cluster_shares())
            .unwrap_or_default()
    }

    /// Checks that all parts fit each other and all numbers are sound. Every decoded or fitted table has passed it.
    pub fn validate(&self) -> Result<(), TableError> {
        let invalid = |text: String| Err(TableError::Invalid(text));
        if !(1..=2).contains(&self.version) {
            return invalid(format!(
                "version {} is not known; this build knows 1 and 2",
                self.version
            ));
        }
        if self.version == 1 && (self.predictors.is_some() || self.text.is_some()) {
            return invalid("version 1 has neither predictors nor a text source".into());
        }
        let geometry = &self.fingerprint.geometry;
        if self.predictors.as_ref().is_some_and(|p| p.geometry() != geometry) {
            return invalid("fingerprint and predictors differ in geometry".into());
        }
        if self.text.is_some() && self.predictors.as_ref().is_none_or(|p| p.text().is_none()) {
            return invalid("a text source without a map of text".into());
        }
        for source in [Source::Prefill, Source::Text] {
            if let Some(part) = self.source(source) {
                part.validate(geometry)?;
            }
        }
        Ok(())
    }
}
