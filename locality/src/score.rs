//! Scoring: a signature's cosine to every centroid.

use crate::table::CentroidTable;

/// Independent partial sums: enough for the compiler to keep several vector registers busy.
const LANES: usize = 32;

/// Inner product of two equally long vectors (the shorter length counts), summed in a fixed order on every machine.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (chunks_a, rest_a) = a.as_chunks::<LANES>();
    let (chunks_b, rest_b) = b.as_chunks::<LANES>();
    for (x, y) in chunks_a.iter().zip(chunks_b) {
        for ((lane, u), v) in lanes.iter_mut().zip(x).zip(y) {
            *lane += u * v;
        }
    }
    let tail: f32 = rest_a.iter().zip(rest_b).map(|(u, v)| u * v).sum();
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0] + tail
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
    for (score, centroid) in out.iter_mut().zip(table.centroids.chunks_exact(dim)) {
        *score = dot(signature, centroid);
    }
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
