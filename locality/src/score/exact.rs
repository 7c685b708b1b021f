//! Scores from f32 centroids: for fits and evaluations, where the whole table is at hand.

use crate::table::CentroidTable;
use crate::vectors;

/// Inner product of two equally long vectors (the shorter length counts), with the same bits on every machine.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    vectors::dot(a, b)
}

/// Lengths that do not fit the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "score: signature of {signature} values and room for {out} scores given, the table has dimension {dim} and {clusters} clusters"
)]
pub struct ScoreError {
    signature: usize,
    out: usize,
    dim: usize,
    clusters: usize,
}

/// Writes the similarity of `signature` to every centroid to `out` (length K).
pub fn scores(table: &CentroidTable, signature: &[f32], out: &mut [f32]) -> Result<(), ScoreError> {
    let (dim, clusters) = (table.transform.dim(), table.clusters());
    if signature.len() != dim || out.len() != clusters {
        return Err(ScoreError {
            signature: signature.len(),
            out: out.len(),
            dim,
            clusters,
        });
    }
    vectors::similarities_of_one(signature, &table.centroids, out);
    Ok(())
}

/// The cluster a signature belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearest {
    /// Index of the most similar centroid; the lowest on ties.
    pub cluster: usize,
    /// Its similarity.
    pub similarity: f32,
}

/// The best of a request's scores; `None` without any.
pub fn nearest(scores: &[f32]) -> Option<Nearest> {
    let mut best: Option<Nearest> = None;
    for (cluster, similarity) in scores.iter().copied().enumerate() {
        if best.is_none_or(|b| similarity > b.similarity) {
            best = Some(Nearest { cluster, similarity });
        }
    }
    best
}

#[cfg(test)]
#[path = "exact_tests.rs"]
mod tests;
