//! Numbering new centroids like the old ones, so that workers keep their traffic over a re-fit.

use super::transport::assign_with_capacities;
use crate::transform::{Transform, normalise};
use crate::vectors::similarities;

/// For each new centroid the number it should get, so that the sum of similarities between old and new centroids of the same number is
/// highest. With more new centroids than old ones the surplus gets the free numbers in ascending order; with fewer, old numbers are left
/// out and numbers stay below the new K. `None` when the rows do not have `dim` values each or are not finite.
pub fn align(old: &[f32], new: &[f32], dim: usize) -> Option<Vec<usize>> {
    if dim == 0 || !old.len().is_multiple_of(dim) || !new.len().is_multiple_of(dim) {
        return None;
    }
    let (olds, news) = (old.len() / dim, new.len() / dim);
    if olds == 0 || news == 0 {
        return Some((0..news).collect());
    }
    // Square: missing old centroids are as far from all new ones as can be, old ones beyond the new K cannot keep their number anyway.
    let scores = similarities(new, old, dim);
    let mut costs = vec![2.0f32; news * news];
    for (row, score) in costs.chunks_exact_mut(news).zip(scores.chunks_exact(olds)) {
        row.iter_mut().zip(score).for_each(|(cost, s)| *cost = 1.0 - s);
    }
    let labels = assign_with_capacities(&costs, news, 1, 1).ok()?;
    Some(labels.into_iter().map(|l| l as usize).collect())
}

/// Puts centroid i at the place `numbers[i]`.
pub(crate) fn renumber(centroids: &[f32], dim: usize, numbers: &[usize]) -> Vec<f32> {
    let mut out = centroids.to_vec();
    for (row, number) in centroids.chunks_exact(dim).zip(numbers) {
        if let Some(place) = out.get_mut(number * dim..(number + 1) * dim) {
            place.copy_from_slice(row);
        }
    }
    out
}

/// Old and new centroids cut to the layers that both transforms keep, as unit vectors, and their length (0 without such layers): what makes
/// centroids of different layers comparable. Both transforms are of one geometry.
pub fn over_common_layers(old: (&Transform, &[f32]), new: (&Transform, &[f32])) -> (Vec<f32>, Vec<f32>, usize) {
    let in_both = |layer: &u16| old.0.kept_layers().contains(layer) && new.0.kept_layers().contains(layer);
    let experts = new.0.geometry().experts;
    let cut = |(transform, centroids): (&Transform, &[f32])| {
        let mut rows = Vec::with_capacity(centroids.len());
        for centroid in centroids.chunks_exact(transform.dim()) {
            let start = rows.len();
            let cells = transform.kept_layers().iter().zip(centroid.chunks_exact(experts));
            for (_, cells) in cells.filter(|(layer, _)| in_both(layer)) {
                rows.extend_from_slice(cells);
            }
            if let Some(row) = rows.get_mut(start..) {
                normalise(row);
            }
        }
        rows
    };
    let common = new.0.kept_layers().iter().filter(|layer| in_both(layer)).count();
    (cut(old), cut(new), common * experts)
}
