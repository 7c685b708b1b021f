//! A table's centroids prepared for decisions.

use std::ops::Range;

use super::fixed::{CELLS, Chunk, GROUP, Panel, SCALE, centroid_chunk, products, quantise, squares};
use super::weigh::{Lanes, weigh};
use crate::counts::ActivationCounts;
use crate::table::NORM_TOLERANCE;
use crate::transform::{MIN_NORM, Transform, TransformError, TransformKind};

/// Transform and centroids of one source of a table, in the form that takes counts to similarities fastest.
///
/// Centroids and signatures are 16-bit fixed point. A product is divided by the norms that the rounded vectors really have, so that an
/// error which all cells share does not reach the similarity. What remains was at most 7.7e-5 on traffic-like vectors of 6 x 64 to 58 x 256
/// cells; the same bits on every machine.
#[derive(Clone, Debug)]
pub struct Scorer {
    transform: Transform,
    /// Weight of each signature cell, where cells are weighted counts.
    weights: Option<Vec<f32>>,
    /// Cells of the kept layers within counts, neighbours joined.
    kept: Vec<Range<usize>>,
    /// Groups of centroids one after the other.
    panels: Vec<Panel>,
    /// Norm of each centroid divided by that of its fixed-point form, K values.
    factors: Vec<f64>,
}

/// Working memory of one decision at a time, made by [`Scorer::scratch`]; any scorer can use it.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    values: Vec<f32>,
    cells: Vec<Chunk>,
    products: Vec<[i32; GROUP]>,
}

/// Why a scorer could not be made or a request not be scored.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScorerError {
    /// Centroids that are not rows of the transform's dimension.
    #[error("scorer: {got} centroid values are not rows of {dim}")]
    Centroids {
        /// Values given.
        got: usize,
        /// Length D of a signature.
        dim: usize,
    },
    /// A centroid that is not a unit vector.
    #[error("scorer: centroid {row} has norm {norm}, 1 expected")]
    Norm {
        /// Its number.
        row: usize,
        /// Its norm.
        norm: f64,
    },
    /// Room for more or fewer scores than there are clusters.
    #[error("scorer: room for {got} scores given, there are {clusters} clusters")]
    Room {
        /// Scores there is room for.
        got: usize,
        /// Number K of clusters.
        clusters: usize,
    },
    /// Counts or values that have no signature.
    #[error(transparent)]
    Transform(#[from] TransformError),
}

impl Scorer {
    /// Prepares `centroids`, K x D row-major unit vectors.
    pub fn new(transform: &Transform, centroids: &[f32]) -> Result<Self, ScorerError> {
        let dim = transform.dim();
        if centroids.is_empty() || !centroids.len().is_multiple_of(dim) {
            return Err(ScorerError::Centroids {
                got: centroids.len(),
                dim,
            });
        }
        let chunks = dim.div_ceil(CELLS);
        let clusters = centroids.len() / dim;
        let mut panels = vec![[[0; CELLS]; GROUP]; clusters.div_ceil(GROUP) * chunks];
        let mut factors = Vec::with_capacity(clusters);
        let groups = centroids.chunks(GROUP * dim).zip(panels.chunks_exact_mut(chunks));
        for (group, panels) in groups {
            for (place, centroid) in group.chunks_exact(dim).enumerate() {
                let norm = centroid.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
                if !norm.is_finite() || (norm - 1.0).abs() > f64::from(NORM_TOLERANCE) {
                    let row = factors.len();
                    return Err(ScorerError::Norm { row, norm });
                }
                let mut sum = 0.0;
                for (panel, values) in panels.iter_mut().zip(centroid.chunks(CELLS)) {
                    let chunk = centroid_chunk(values.iter().map(|v| f64::from(*v) / norm));
                    sum += chunk.iter().map(|c| f64::from(*c).powi(2)).sum::<f64>();
                    panel[place] = chunk;
                }
                factors.push(norm / sum.sqrt());
            }
        }
        Ok(Self {
            weights: match transform.kind() {
                TransformKind::CountIdf => Some(transform.idf().to_vec()),
                TransformKind::Count => Some(vec![1.0; dim]),
                TransformKind::Sqrt | TransformKind::Binary | TransformKind::GateProbability => None,
            },
            kept: runs(transform),
            transform: transform.clone(),
            panels,
            factors,
        })
    }

    /// Number K of clusters.
    pub fn clusters(&self) -> usize {
        self.factors.len()
    }

    /// What turns counts into signatures.
    pub fn transform(&self) -> &Transform {
        &self.transform
    }

    /// Bytes that a decision reads of the centroids.
    pub fn bytes(&self) -> usize {
        size_of_val(self.panels.as_slice())
    }

    /// Working memory of the right size: with it, no call allocates.
    pub fn scratch(&self) -> Scratch {
        let mut scratch = Scratch::default();
        self.fit(&mut scratch);
        scratch
    }

    /// Writes the similarities of the signature of `counts` to all centroids to `out` (length K) and returns the norm before division, as
    /// [`Transform::signature`] does; after 0, a zero signature, all similarities are 0.
    pub fn scores_of_counts(
        &self,
        counts: &ActivationCounts,
        scratch: &mut Scratch,
        out: &mut [f32],
    ) -> Result<f32, ScorerError> {
        self.check_room(out)?;
        self.fit(scratch);
        let Some(weights) = &self.weights else {
            let norm = self.transform.signature(counts, &mut scratch.values)?;
            return self.scores(norm, SCALE, scratch, out);
        };
        if counts.geometry() != self.transform.geometry() {
            return Err(ScorerError::Transform(TransformError::Geometry {
                got: *counts.geometry(),
                expected: *self.transform.geometry(),
            }));
        }
        let mut lanes = Lanes::default();
        let mut at = 0;
        for run in &self.kept {
            let to = at + run.len();
            let parts = (
                counts.cells().get(run.clone()),
                weights.get(at..to),
                scratch.values.get_mut(at..to),
            );
            if let (Some(counts), Some(weights), Some(out)) = parts {
                weigh(counts, weights, out, &mut lanes);
            }
            at = to;
        }
        let norm = lanes.iter().sum::<f32>().sqrt();
        self.scores(norm, SCALE / norm.max(MIN_NORM), scratch, out)
    }

    /// The same for real-valued activations [L, E], such as predicted frequencies.
    pub fn scores_of_values(&self, values: &[f32], scratch: &mut Scratch, out: &mut [f32]) -> Result<f32, ScorerError> {
        self.check_room(out)?;
        self.fit(scratch);
        let norm = self.transform.signature_of_values(values, &mut scratch.values)?;
        self.scores(norm, SCALE, scratch, out)
    }

    /// Scores the scratch's values times `by`, which makes [`SCALE`] of their norm. `norm` is that of the activations.
    fn scores(&self, norm: f32, by: f32, scratch: &mut Scratch, out: &mut [f32]) -> Result<f32, ScorerError> {
        if !norm.is_finite() {
            return Err(ScorerError::Transform(TransformError::Value));
        }
        quantise(&scratch.values, by, &mut scratch.cells);
        products(&scratch.cells, &self.panels, &mut scratch.products);
        let rounded = f64::from(squares(&scratch.cells)).sqrt();
        let by = if rounded > 0.0 { 1.0 / rounded } else { 0.0 };
        let products = scratch.products.as_flattened().iter().zip(&self.factors);
        for (out, (product, factor)) in out.iter_mut().zip(products) {
            *out = (f64::from(*product) * factor * by) as f32;
        }
        Ok(norm)
    }

    fn check_room(&self, out: &[f32]) -> Result<(), ScorerError> {
        if out.len() == self.clusters() {
            return Ok(());
        }
        Err(ScorerError::Room {
            got: out.len(),
            clusters: self.clusters(),
        })
    }

    fn fit(&self, scratch: &mut Scratch) {
        let dim = self.transform.dim();
        scratch.values.resize(dim, 0.0);
        scratch.cells.resize(dim.div_ceil(CELLS), [0; CELLS]);
        scratch.products.resize(self.clusters().div_ceil(GROUP), [0; GROUP]);
    }
}

/// Cells of the kept layers, those of neighbouring layers as one range.
fn runs(transform: &Transform) -> Vec<Range<usize>> {
    let experts = transform.geometry().experts;
    let mut runs: Vec<Range<usize>> = Vec::new();
    for layer in transform.kept_layers() {
        let start = usize::from(*layer) * experts;
        match runs.last_mut() {
            Some(last) if last.end == start => last.end += experts,
            _ => runs.push(start..start + experts),
        }
    }
    runs
}
