//! Greedy forward selection of layers by rho: which layers' prefill counts tell decode overlap best.
//!
//! Per pair and layer one inner product is taken once; adding a layer to the chosen ones adds two numbers per pair, so a pair is never
//! computed from scratch. Candidates of a round are scored on several threads; ties go to the lowest layer, so the result is the same.

use rayon::prelude::*;

use crate::spearman::{RankScratch, RankedTarget};
use crate::vectors::{dot, pair_products};

/// The order in which layers were added and rho after each.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSelection {
    /// Layers in the order they were added; all L of them.
    pub order: Vec<u16>,
    /// Rho of the first n layers of `order`, for n = 1..=L.
    pub rho: Vec<f64>,
    /// The kept layers, ascending: the prefix of `order` with the highest rho, the shortest such.
    pub kept: Vec<u16>,
}

/// Selects layers. `signal` are per-request rows [N, L x experts] (weighted prefill counts, not normalised), `target` one decode distance
/// for each of `pairs`. `None` when sizes do not fit, there are fewer than two pairs or the target has no variation. A request without any
/// signal is at distance 1 from all others.
pub fn select_layers(
    signal: &[f32],
    layers: usize,
    experts: usize,
    pairs: &[(u32, u32)],
    target: &[f32],
) -> Option<LayerSelection> {
    let dim = layers * experts;
    if dim == 0 || !signal.len().is_multiple_of(dim) || pairs.len() != target.len() || pairs.len() < 2 {
        return None;
    }
    let requests = signal.len() / dim;
    if pairs
        .iter()
        .any(|(i, j)| *i as usize >= requests || *j as usize >= requests)
    {
        return None;
    }
    let first = target.first()?;
    if target.iter().all(|t| t == first) {
        return None;
    }
    let products = LayerProducts::new(signal, layers, experts, pairs);
    Some(greedy(&products, layers, pairs, &RankedTarget::new(target)))
}

/// Inner products of each pair and squared norms of each request, per layer.
struct LayerProducts {
    /// [L, pairs]
    products: Vec<Vec<f32>>,
    /// [L, N]
    squares: Vec<Vec<f32>>,
}

impl LayerProducts {
    fn new(signal: &[f32], layers: usize, experts: usize, pairs: &[(u32, u32)]) -> Self {
        let dim = layers * experts;
        let (products, squares) = (0..layers)
            .into_par_iter()
            .map(|layer| {
                let columns = (layer * experts, (layer + 1) * experts);
                let square = |row: &[f32]| dot(&row[columns.0..columns.1], &row[columns.0..columns.1]);
                (
                    pair_products(signal, dim, columns, pairs),
                    signal.chunks_exact(dim).map(square).collect(),
                )
            })
            .unzip();
        Self { products, squares }
    }
}

/// Steps of a distance of 1, which are told apart: as many as an f32 just below 1 has.
const STEPS: f64 = (1u32 << 24) as f64;

fn greedy(products: &LayerProducts, layers: usize, pairs: &[(u32, u32)], target: &RankedTarget) -> LayerSelection {
    let requests = products.squares.first().map_or(0, Vec::len);
    let (mut product, mut square) = (vec![0.0f64; pairs.len()], vec![0.0f64; requests]);
    let mut left: Vec<u16> = (0..layers as u16).collect();
    let (mut order, mut rho) = (Vec::new(), Vec::new());
    while !left.is_empty() {
        let scored: Vec<f64> = left
            .par_iter()
            .map_init(<(Vec<f64>, RankScratch)>::default, |(inverse, scratch), layer| {
                let (more, norms) = (
                    &products.products[usize::from(*layer)],
                    &products.squares[usize::from(*layer)],
                );
                inverse.clear();
                inverse.extend(square.iter().zip(norms).map(|(sum, own)| {
                    let norm = sum + f64::from(*own);
                    if norm > 0.0 { 1.0 / norm.sqrt() } else { 0.0 }
                }));
                // Fixed point: rows alike stay tied at 0, and two passes sort 26 bits.
                let distances = pairs.iter().zip(product.iter().zip(more)).map(|((i, j), (sum, own))| {
                    let cosine = (sum + f64::from(*own)) * inverse[*i as usize] * inverse[*j as usize];
                    ((1.0 - cosine) * STEPS + 0.5) as u32
                });
                target.correlation(distances, scratch)
            })
            .collect();
        let mut best = 0;
        for (at, value) in scored.iter().enumerate() {
            if *value > scored[best] {
                best = at;
            }
        }
        let layer = left.remove(best);
        let (more, norms) = (
            &products.products[usize::from(layer)],
            &products.squares[usize::from(layer)],
        );
        product
            .iter_mut()
            .zip(more)
            .for_each(|(sum, own)| *sum += f64::from(*own));
        square
            .iter_mut()
            .zip(norms)
            .for_each(|(sum, own)| *sum += f64::from(*own));
        order.push(layer);
        rho.push(scored[best]);
    }
    let mut peak = 0;
    for (at, value) in rho.iter().enumerate() {
        if *value > rho[peak] {
            peak = at;
        }
    }
    let mut kept = order[..=peak].to_vec();
    kept.sort_unstable();
    LayerSelection { order, rho, kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spearman::{all_pairs, average_ranks};
    use crate::transform::normalise;
    use crate::vectors::pair_distances;

    /// Explicit vector of the fact sheet: four requests, three layers of two experts, all pairs.
    #[test]
    fn greedy_matches_the_explicit_vector() {
        let signal: Vec<f32> = [
            [[4, 0], [1, 3], [2, 2]],
            [[3, 1], [3, 1], [2, 2]],
            [[0, 4], [1, 3], [1, 3]],
            [[1, 3], [3, 1], [3, 1]],
        ]
        .concat()
        .concat()
        .into_iter()
        .map(|v: i32| v as f32)
        .collect();
        let mut decode: Vec<f32> = [
            [[8, 0], [4, 4], [5, 3]],
            [[6, 2], [4, 4], [4, 4]],
            [[1, 7], [4, 4], [3, 5]],
            [[2, 6], [4, 4], [4, 4]],
        ]
        .concat()
        .concat()
        .into_iter()
        .map(|v: i32| v as f32)
        .collect();
        decode.chunks_exact_mut(6).for_each(|row| {
            normalise(row);
        });
        let pairs = all_pairs(4);
        let target = pair_distances(&decode, 6, &pairs);
        assert_eq!(average_ranks(&target), [2.0, 6.0, 5.0, 4.0, 3.0, 1.0]);
        let found = select_layers(&signal, 3, 2, &pairs, &target).unwrap();
        assert_eq!(found.order, [0, 2, 1]);
        for (got, expected) in found.rho.iter().zip([0.971_008, 0.942_857, 0.828_571]) {
            assert!((got - expected).abs() < 1e-5, "{:?}", found.rho);
        }
        assert_eq!(found.kept, [0]);
        for (layer, expected) in [0.971_008, -0.414_039, -0.169_031].into_iter().enumerate() {
            let only: Vec<f32> = signal
                .chunks_exact(6)
                .flat_map(|r| r[layer * 2..layer * 2 + 2].to_vec())
                .collect();
            let alone = select_layers(&only, 1, 2, &pairs, &target).unwrap();
            assert!((alone.rho[0] - expected).abs() < 1e-5, "layer {layer}: {:?}", alone.rho);
        }
    }

    #[test]
    fn refuses_targets_without_variation_and_wrong_sizes() {
        let pairs = all_pairs(2);
        assert!(select_layers(&[1.0; 4], 1, 2, &pairs, &[0.5]).is_none());
        let pairs = all_pairs(3);
        assert!(select_layers(&[1.0; 6], 1, 2, &pairs, &[0.5; 3]).is_none());
        assert!(select_layers(&[1.0; 5], 1, 2, &pairs, &[0.1, 0.2, 0.3]).is_none());
    }
}
