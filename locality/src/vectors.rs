//! Products of many vectors at once. Work is spread over threads; each result is computed by one of them in a fixed order, so results do
//! not depend on the number of threads.

use rayon::prelude::*;

use crate::score::dot;

/// Rows that one task takes together: each unit vector is fetched once for all of them.
const ROWS_PER_TASK: usize = 4;

/// Similarities [N, K] of N rows to K unit vectors, both of length `dim`.
pub(crate) fn similarities(rows: &[f32], units: &[f32], dim: usize) -> Vec<f32> {
    let dim = dim.max(1);
    let clusters = (units.len() / dim).max(1);
    let mut out = vec![0.0; rows.len() / dim * clusters];
    let tasks = out
        .par_chunks_mut(clusters * ROWS_PER_TASK)
        .zip(rows.par_chunks(dim * ROWS_PER_TASK));
    tasks.for_each(|(scores, rows)| {
        for (c, unit) in units.chunks_exact(dim).enumerate() {
            for (score, row) in scores.iter_mut().skip(c).step_by(clusters).zip(rows.chunks_exact(dim)) {
                *score = dot(row, unit);
            }
        }
    });
    out
}

/// Cosine distances 1 - a.b of pairs of unit rows.
pub(crate) fn pair_distances(rows: &[f32], dim: usize, pairs: &[(u32, u32)]) -> Vec<f32> {
    let row = |i: u32| rows.get(i as usize * dim..(i as usize + 1) * dim).unwrap_or(&[]);
    pairs.par_iter().map(|(i, j)| 1.0 - dot(row(*i), row(*j))).collect()
}
