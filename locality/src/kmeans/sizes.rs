//! Labels of one iteration: the exact assignment under bounds on cluster sizes.

use super::transport::{TransportError, assign_with_capacities};
use super::{Balance, KMeansError};
use crate::score::nearest;

/// Copies that stand for an average sample, at most, where samples weigh differently.
const COPIES: f64 = 4.0;

/// The cluster of each sample, maximising the sum of `scores` [N, K] over samples, each counting by its weight (none given: 1 each).
///
/// Sizes are in samples if all weigh the same. Otherwise they are in requests: a sample takes part as copies in proportion to its weight (as many
/// times as it outweighs the lightest, or four on average where that were more) and gets the cluster of most of its copies. The lightest
/// have at least one. An optimum splits at most K - 1 samples, so sizes are off by little more than these.
pub(super) fn label(scores: &[f32], k: usize, weights: &[f32], balance: Balance) -> Result<Vec<u32>, KMeansError> {
    if balance == Balance::None {
        let best = |row| nearest(row).map_or(0, |n| n.cluster as u32);
        return Ok(scores.chunks_exact(k).map(best).collect());
    }
    let copies = copies(weights);
    let total = copies
        .as_ref()
        .map_or(scores.len() / k, |copies| copies.iter().sum::<usize>());
    let (lower, upper) = bounds(total, k, balance)?;
    let cost = |s: &f32| 1.0 - s;
    let Some(copies) = copies else {
        let costs: Vec<f32> = scores.iter().map(cost).collect();
        return Ok(assign_with_capacities(&costs, k, lower, upper)?);
    };
    let mut costs = Vec::with_capacity(total * k);
    for (row, copies) in scores.chunks_exact(k).zip(&copies) {
        for _ in 0..*copies {
            costs.extend(row.iter().map(cost));
        }
    }
    let labels = assign_with_capacities(&costs, k, lower, upper)?;
    let mut rest = labels.as_slice();
    let mut votes = vec![0usize; k];
    let mut out = Vec::with_capacity(copies.len());
    for copies in copies {
        let (own, later) = rest.split_at(copies.min(rest.len()));
        rest = later;
        votes.fill(0);
        for label in own {
            votes[*label as usize] += 1;
        }
        let most = votes.iter().copied().max().unwrap_or(0);
        out.push(votes.iter().position(|v| *v == most).unwrap_or(0) as u32);
    }
    Ok(out)
}

/// Copies of each sample; `None` where all weigh the same.
fn copies(weights: &[f32]) -> Option<Vec<usize>> {
    let first = weights.first()?;
    let total: f64 = weights.iter().map(|w| f64::from(*w)).sum();
    if weights.iter().all(|w| w == first) || total <= 0.0 {
        return None;
    }
    let lightest = weights
        .iter()
        .copied()
        .filter(|w| *w > 0.0)
        .fold(f32::INFINITY, f32::min);
    let per_request = (COPIES * weights.len() as f64 / total).min(1.0 / f64::from(lightest));
    let copies = |w: &f32| ((f64::from(*w) * per_request).round() as usize).max(1);
    Some(weights.iter().map(copies).collect())
}

/// Least and most members of a cluster, of `total`.
fn bounds(total: usize, k: usize, balance: Balance) -> Result<(usize, usize), KMeansError> {
    let most = total.div_ceil(k);
    match balance {
        Balance::Upper => Ok((0, most)),
        Balance::Even => Ok((total / k, most)),
        Balance::None => Ok((0, total)),
        Balance::Within { least, most } if least <= 100 && most >= 100 => {
            let share = |percent: u16| total.saturating_mul(usize::from(percent));
            Ok((share(least) / (100 * k), share(most).div_ceil(100 * k)))
        }
        Balance::Within { .. } => Err(KMeansError::Shape(
            "cluster sizes must be bounded by at most 100 % below and at least 100 % above",
        )),
    }
}

impl From<TransportError> for KMeansError {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::Costs => Self::NotFinite,
            TransportError::Capacity { .. } => Self::Shape("cluster sizes cannot be kept"),
        }
    }
}
