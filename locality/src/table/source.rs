//! What a table knows of one source of signatures.

use super::{Baselines, CentroidTable, MAX_CLUSTERS, NORM_TOLERANCE, TableError};
use crate::geometry::Geometry;
use crate::sample::Source;
use crate::transform::Transform;

/// Centroids of signatures of source Text, fitted on predictions of requests that the text map had not seen.
#[derive(Clone, Debug, PartialEq)]
pub struct TextSource {
    /// Predicted frequencies to signature.
    pub transform: Transform,
    /// Unit vectors, K x D row-major.
    pub centroids: Vec<f32>,
    /// Width of the locality band in cosine units.
    pub tau: f32,
    /// Held-out statistics.
    pub baselines: Baselines,
}

/// One source's part of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceView<'a> {
    /// Counts or frequencies to signature.
    pub transform: &'a Transform,
    /// Unit vectors, K x D row-major.
    pub centroids: &'a [f32],
    /// Width of the locality band in cosine units.
    pub tau: f32,
    /// Held-out statistics.
    pub baselines: &'a Baselines,
}

impl SourceView<'_> {
    /// Number of clusters K.
    pub fn clusters(&self) -> usize {
        self.centroids.len() / self.transform.dim()
    }

    /// Traffic share of each cluster: the held-out one, or 1/K each where the table has none.
    pub fn cluster_shares(&self) -> Vec<f64> {
        let clusters = self.clusters();
        if self.baselines.cluster_shares.len() == clusters {
            self.baselines.cluster_shares.clone()
        } else {
            vec![1.0 / clusters as f64; clusters]
        }
    }

    pub(super) fn validate(&self, geometry: &Geometry) -> Result<(), TableError> {
        let invalid = |text: String| Err(TableError::Invalid(text));
        if geometry != self.transform.geometry() {
            return invalid("fingerprint and transform differ in geometry".into());
        }
        let dim = self.transform.dim();
        let clusters = self.clusters();
        if !(1..=MAX_CLUSTERS).contains(&clusters) || self.centroids.len() != clusters * dim {
            return invalid(format!(
                "{} centroid values are not 1 to {MAX_CLUSTERS} rows of {dim}",
                self.centroids.len()
            ));
        }
        for (row, centroid) in self.centroids.chunks_exact(dim).enumerate() {
            let norm = crate::score::dot(centroid, centroid).sqrt();
            if !norm.is_finite() || (norm - 1.0).abs() > NORM_TOLERANCE {
                return invalid(format!("centroid {row} has norm {norm}, 1 expected"));
            }
        }
        if !self.tau.is_finite() || !(0.0..=2.0).contains(&self.tau) {
            return invalid(format!("tau is {}, must be 0 to 2", self.tau));
        }
        self.baselines.validate(clusters)
    }
}

impl CentroidTable {
    /// The part of one source; `None` for Text where the table has no centroids for it. Signatures of one source are never compared
    /// with centroids of the other.
    pub fn source(&self, source: Source) -> Option<SourceView<'_>> {
        match source {
            Source::Prefill => Some(SourceView {
                transform: &self.transform,
                centroids: &self.centroids,
                tau: self.tau,
                baselines: &self.baselines,
            }),
            Source::Text => self.text.as_ref().map(|text| SourceView {
                transform: &text.transform,
                centroids: &text.centroids,
                tau: text.tau,
                baselines: &text.baselines,
            }),
        }
    }
}
