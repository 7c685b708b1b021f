//! Spearman correlation over pairs of requests (rho, Eq. 1 of the ELDR paper), with an interval from resampled requests.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Pairs of request indices.
pub type Pairs = Vec<(u32, u32)>;

/// Keeps a correlation of constant ranks from dividing by zero, as ELDR does.
const EPSILON: f64 = 1e-9;

/// All pairs i < j of `n` requests.
pub fn all_pairs(n: usize) -> Pairs {
    let n = n as u32;
    (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).collect()
}

/// `draws` pairs drawn uniformly with replacement; draws of a request with itself are dropped, repeats kept. When there are no more
/// pairs than draws, all of them once.
pub fn sample_pairs(n: usize, draws: usize, seed: u64) -> Pairs {
    if n < 2 {
        return Vec::new();
    }
    if n.saturating_mul(n - 1) / 2 <= draws {
        return all_pairs(n);
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut draw = || rng.gen_range(0..n as u32);
    (0..draws).map(|_| (draw(), draw())).filter(|(i, j)| i != j).collect()
}

/// Values in rank order, with the ties that share a rank: sorted once, used for many weightings.
#[derive(Clone, Debug)]
pub struct Ranking {
    order: Vec<u32>,
    /// Ends (exclusive) of runs of equal values in `order`.
    runs: Vec<u32>,
}

impl Ranking {
    /// Sorts the values; NaN sorts last.
    pub fn new(values: &[f32]) -> Self {
        let keyed = radix_sorted(values);
        let mut runs = Vec::new();
        for (at, key) in keyed.iter().enumerate() {
            if keyed.get(at + 1).is_none_or(|next| next >> 32 != key >> 32) {
                runs.push(at as u32 + 1);
            }
        }
        Self {
            order: keyed.iter().map(|k| *k as u32).collect(),
            runs,
        }
    }

    /// Ranks from 1, ties sharing their average.
    pub fn ranks(&self) -> Vec<f32> {
        let mut ranks = vec![0.0; self.order.len()];
        let mut start = 0u32;
        for end in &self.runs {
            let rank = (f64::from(start) + 1.0 + f64::from(*end)) as f32 / 2.0;
            for at in start..*end {
                ranks[self.order[at as usize] as usize] = rank;
            }
            start = *end;
        }
        ranks
    }

    /// Average ranks where value i counts `weights[i]` times, written to `out`.
    fn weighted_ranks(&self, weights: &[f64], out: &mut [f64]) {
        let (mut below, mut start) = (0.0, 0usize);
        for end in &self.runs {
            let run = &self.order[start..*end as usize];
            let mass: f64 = run.iter().map(|i| weights[*i as usize]).sum();
            for i in run {
                out[*i as usize] = below + mass.midpoint(1.0);
            }
            below += mass;
            start = *end as usize;
        }
    }
}

/// (ordered bits, index) of each value, ascending: three counting passes over 11 bits each, which for tens of thousands of values takes a
/// fraction of a comparison sort's time. Layer selection ranks the same pairs over a thousand times.
fn radix_sorted(values: &[f32]) -> Vec<u64> {
    const BITS: u32 = 11;
    const BUCKETS: usize = 1 << BITS;
    let mut from: Vec<u64> = values
        .iter()
        .enumerate()
        .map(|(i, v)| (u64::from(ordered(*v)) << 32) | i as u64)
        .collect();
    let mut to = vec![0u64; from.len()];
    for pass in 0..3 {
        let digit = |key: u64| (key >> (32 + pass * BITS)) as usize & (BUCKETS - 1);
        let mut starts = [0usize; BUCKETS];
        for key in &from {
            starts[digit(*key)] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += std::mem::replace(start, sum);
        }
        for key in &from {
            let slot = &mut starts[digit(*key)];
            to[*slot] = *key;
            *slot += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    from
}

/// Bits that order as the floats do; -0 and 0 are equal.
fn ordered(value: f32) -> u32 {
    let bits = (value + 0.0).to_bits();
    if bits >> 31 == 0 { bits | 0x8000_0000 } else { !bits }
}

/// Ranks from 1, ties sharing their average.
pub fn average_ranks(values: &[f32]) -> Vec<f32> {
    Ranking::new(values).ranks()
}

/// Spearman correlation; `None` when the lengths differ, fewer than two values are given or either side has no variation.
pub fn spearman(x: &[f32], y: &[f32]) -> Option<f64> {
    if x.len() != y.len() || x.len() < 2 {
        return None;
    }
    let (rx, ry) = (Ranking::new(x), Ranking::new(y));
    if rx.runs.len() < 2 || ry.runs.len() < 2 {
        return None;
    }
    Some(rank_correlation(&rx.ranks(), &ry.ranks()))
}

/// Pearson correlation of two rank lists of equal length.
pub(crate) fn rank_correlation(x: &[f32], y: &[f32]) -> f64 {
    // Ranks always have this mean, ties or not.
    let mean = (x.len() as f64).midpoint(1.0);
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (a, b) in x.iter().zip(y) {
        let (a, b) = (f64::from(*a) - mean, f64::from(*b) - mean);
        xy += a * b;
        xx += a * a;
        yy += b * b;
    }
    xy / (xx * yy + EPSILON).sqrt()
}

/// A correlation with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rho {
    /// Spearman correlation over the pairs.
    pub value: f64,
    /// Standard error over resampled requests.
    pub standard_error: f64,
    /// 95 % interval over resampled requests.
    pub interval: [f64; 2],
}

/// Rho of two distances per pair, with an interval from `resamples` draws of *requests* with replacement: pairs share requests, so an
/// interval over pairs would be far too narrow. `None` as for [`spearman`], or for pairs outside `requests`.
pub fn rho_with_interval(
    pairs: &[(u32, u32)],
    x: &[f32],
    y: &[f32],
    requests: usize,
    resamples: usize,
    seed: u64,
) -> Option<Rho> {
    let inside = pairs
        .iter()
        .all(|(i, j)| (*i as usize) < requests && (*j as usize) < requests);
    if pairs.len() != x.len() || !inside {
        return None;
    }
    let value = spearman(x, y)?;
    let (rx, ry) = (Ranking::new(x), Ranking::new(y));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut times = vec![0u32; requests];
    let (mut weights, mut a, mut b) = (vec![0.0; pairs.len()], vec![0.0; pairs.len()], vec![0.0; pairs.len()]);
    let mut draws: Vec<f64> = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        times.fill(0);
        for _ in 0..requests {
            times[rng.gen_range(0..requests)] += 1;
        }
        for (w, (i, j)) in weights.iter_mut().zip(pairs) {
            *w = f64::from(times[*i as usize] * times[*j as usize]);
        }
        rx.weighted_ranks(&weights, &mut a);
        ry.weighted_ranks(&weights, &mut b);
        draws.extend(weighted_correlation(&a, &b, &weights));
    }
    draws.sort_unstable_by(f64::total_cmp);
    let n = draws.len() as f64;
    let mean = draws.iter().sum::<f64>() / n.max(1.0);
    let variance = draws.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    let at = |q: f64| {
        draws
            .get(((n - 1.0) * q).round().max(0.0) as usize)
            .copied()
            .unwrap_or(value)
    };
    Some(Rho {
        value,
        standard_error: variance.sqrt(),
        interval: [at(0.025), at(0.975)],
    })
}

fn weighted_correlation(x: &[f64], y: &[f64], weights: &[f64]) -> Option<f64> {
    let total: f64 = weights.iter().sum();
    if total <= 1.0 {
        return None;
    }
    let mean = |v: &[f64]| v.iter().zip(weights).map(|(v, w)| v * w).sum::<f64>() / total;
    let (mx, my) = (mean(x), mean(y));
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for ((a, b), w) in x.iter().zip(y).zip(weights) {
        let (a, b) = (a - mx, b - my);
        xy += w * a * b;
        xx += w * a * a;
        yy += w * b * b;
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy + EPSILON).sqrt())
}
