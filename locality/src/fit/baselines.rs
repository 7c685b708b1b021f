//! What held-out samples look like under a new table.

use super::options::{FitOptions, Tau};
use crate::score::nearest;
use crate::table::Baselines;
use crate::vectors::similarities;

pub(super) struct Measured {
    pub(super) baselines: Baselines,
    /// As asked for: fixed, or a quantile of the gap between the two best scores.
    pub(super) tau: f32,
}

/// Measures fit, skew, shares and gaps, each sample counting as the requests it stands for. Zero signatures are left out, as routers do.
pub(super) fn measure(rows: &[f32], weights: &[f32], centroids: &[f32], dim: usize, options: &FitOptions) -> Measured {
    let k = options.clusters;
    let mut shares = vec![0.0f64; k];
    let (mut total, mut squares, mut sum, mut seen) = (0.0, 0.0, 0.0, Vec::new());
    let mut gaps: Vec<(f32, f64)> = Vec::new();
    let scores = similarities(rows, centroids, dim);
    for ((row, score), weight) in rows.chunks_exact(dim).zip(scores.chunks_exact(k)).zip(weights) {
        let Some(best) = nearest(score).filter(|_| row.iter().any(|v| *v > 0.0)) else {
            continue;
        };
        let w = f64::from(*weight);
        shares[best.cluster] += w;
        total += w;
        squares += w * w;
        sum += w * f64::from(best.similarity);
        seen.push((f64::from(best.similarity), w));
        let second = score
            .iter()
            .enumerate()
            .filter(|(c, _)| *c != best.cluster)
            .map(|(_, s)| *s);
        gaps.push((best.similarity - second.fold(-1.0, f32::max), w));
    }
    if total <= 0.0 {
        return Measured {
            baselines: Baselines::default(),
            tau: match options.tau {
                Tau::Fixed(tau) => tau,
                Tau::Quantile(_) => 0.0,
            },
        };
    }
    let mean = sum / total;
    let variance = seen.iter().map(|(s, w)| w * (s - mean) * (s - mean)).sum::<f64>() / total;
    // Requests that weighted samples are worth: what n is to an unweighted mean.
    let effective = total * total / squares;
    for share in &mut shares {
        *share /= total;
    }
    let busiest = shares.iter().copied().fold(0.0, f64::max);
    let tau = match options.tau {
        Tau::Quantile(q) if k > 1 => weighted_quantile(&mut gaps, q * total).clamp(0.0, 2.0),
        Tau::Fixed(tau) => tau,
        Tau::Quantile(_) => 0.0,
    };
    Measured {
        baselines: Baselines {
            requests: effective.round() as u64,
            fit_mean: mean,
            fit_se: (variance / (effective - 1.0).max(1.0)).sqrt(),
            skew: busiest * k as f64,
            cluster_shares: shares,
            rho: None,
            rho_se: None,
        },
        tau,
    }
}

fn weighted_quantile(values: &mut [(f32, f64)], mass: f64) -> f32 {
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut below = 0.0;
    for (value, weight) in values.iter() {
        below += weight;
        if below >= mass {
            return *value;
        }
    }
    values.last().map_or(0.0, |v| v.0)
}
