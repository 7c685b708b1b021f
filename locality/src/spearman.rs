//! Spearman correlation over pairs of requests (rho, Eq. 1 of the ELDR paper), with an interval from resampled requests.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

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
        self.twice_ranks()
            .into_iter()
            .map(|r| (f64::from(r) / 2.0) as f32)
            .collect()
    }

    /// Twice the average ranks: whole numbers.
    fn twice_ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.order.len()];
        let mut start = 0u32;
        for end in &self.runs {
            for at in start..*end {
                ranks[self.order[at as usize] as usize] = start + 1 + end;
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

/// (ordered bits, index) of each value, ascending.
fn radix_sorted(values: &[f32]) -> Vec<u64> {
    let keyed = values.iter().enumerate();
    let mut from: Vec<u64> = keyed.map(|(i, v)| (u64::from(ordered(*v)) << 32) | i as u64).collect();
    radix_sort(&mut from, &mut Vec::new());
    from
}

/// Sorts by the upper 32 bits, equals in their order, in as many counting passes as the keys have digits: a fraction of a comparison sort's
/// time for tens of thousands of values.
fn radix_sort(from: &mut Vec<u64>, room: &mut Vec<u64>) {
    let used = 64 - from.iter().fold(0, |all, key| all | key).leading_zeros();
    let (passes, bits) = if used <= 32 + 26 { (2, 13) } else { (3, 11) };
    let buckets = 1usize << bits;
    let digit = |key: u64, pass: usize| (key >> (32 + pass * bits)) as usize & (buckets - 1);
    let mut starts = vec![0u32; passes * buckets];
    for key in from.iter() {
        for pass in 0..passes {
            starts[pass * buckets + digit(*key, pass)] += 1;
        }
    }
    room.resize(from.len(), 0);
    for (pass, starts) in starts.chunks_exact_mut(buckets).enumerate() {
        let mut sum = 0;
        for start in starts.iter_mut() {
            sum += std::mem::replace(start, sum);
        }
        for key in from.iter() {
            let start = &mut starts[digit(*key, pass)];
            room[*start as usize] = *key;
            *start += 1;
        }
        std::mem::swap(from, room);
    }
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
    let varies = |v: &[f32]| v.windows(2).any(|w| ordered(w[0]) != ordered(w[1]));
    (varies(x) && varies(y)).then(|| {
        let keys = x.iter().map(|v| ordered(*v));
        RankedTarget::new(y).correlation(keys, &mut RankScratch::default())
    })
}

/// One side of many Spearman correlations, ranked once.
#[derive(Debug)]
pub(crate) struct RankedTarget {
    /// Twice the average rank of each value.
    twice_ranks: Vec<u32>,
    /// 4 x the sum of squared deviations of the ranks.
    spread: f64,
}

/// Room that correlations reuse: (key, twice the rank of its target).
#[derive(Debug, Default)]
pub(crate) struct RankScratch {
    sorted: Vec<u64>,
    room: Vec<u64>,
}

impl RankedTarget {
    pub(crate) fn new(values: &[f32]) -> Self {
        let ranking = Ranking::new(values);
        let mut start = 0;
        let mut ties = 0;
        for end in &ranking.runs {
            ties += cube_minus_self(u64::from(end - start));
            start = *end;
        }
        Self {
            twice_ranks: ranking.twice_ranks(),
            spread: spread(values.len(), ties),
        }
    }

    /// Spearman correlation with as many values, given by keys of their order. Layer selection asks for over a thousand on the same pairs: keys
    /// are sorted with the target's ranks beside them, and ranks are summed as whole numbers, exact in whatever order.
    pub(crate) fn correlation(&self, keys: impl Iterator<Item = u32>, scratch: &mut RankScratch) -> f64 {
        scratch.sorted.clear();
        let keyed = keys.zip(&self.twice_ranks);
        scratch
            .sorted
            .extend(keyed.map(|(key, rank)| (u64::from(key) << 32) | u64::from(*rank)));
        radix_sort(&mut scratch.sorted, &mut scratch.room);
        let (mut products, mut ties, mut start) = (0u128, 0u128, 0usize);
        let sorted = &scratch.sorted;
        while let Some(first) = sorted.get(start) {
            let mut targets = first & u64::from(u32::MAX);
            let mut end = start + 1;
            while let Some(next) = sorted.get(end).filter(|next| *next >> 32 == first >> 32) {
                targets += next & u64::from(u32::MAX);
                end += 1;
            }
            products += u128::from((start + 1 + end) as u64) * u128::from(targets);
            if end > start + 1 {
                ties += cube_minus_self((end - start) as u64);
            }
            start = end;
        }
        let n = sorted.len() as u128;
        // 4 x the sum of products of deviations: ranks always have the mean (n + 1) / 2.
        let covariance = products as i128 - (n * (n + 1) * (n + 1)) as i128;
        let spreads = self.spread / 4.0 * (spread(n as usize, ties) / 4.0);
        covariance as f64 / 4.0 / (spreads + EPSILON).sqrt()
    }
}

/// 4 x the sum of squared deviations of `n` ranks, given the sum of t^3 - t over runs of t ties.
fn spread(n: usize, ties: u128) -> f64 {
    ((cube_minus_self(n as u64) - ties) / 3) as f64
}

fn cube_minus_self(n: u64) -> u128 {
    let n = u128::from(n);
    n * n * n - n
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
    let drawn: Vec<Vec<u32>> = (0..resamples)
        .map(|_| {
            let mut times = vec![0u32; requests];
            for _ in 0..requests {
                times[rng.gen_range(0..requests)] += 1;
            }
            times
        })
        .collect();
    let room = || (vec![0.0; pairs.len()], vec![0.0; pairs.len()], vec![0.0; pairs.len()]);
    let mut draws: Vec<f64> = drawn
        .par_iter()
        .map_init(room, |(weights, a, b), times| {
            for (w, (i, j)) in weights.iter_mut().zip(pairs) {
                *w = f64::from(times[*i as usize] * times[*j as usize]);
            }
            rx.weighted_ranks(weights, a);
            ry.weighted_ranks(weights, b);
            weighted_correlation(a, b, weights)
        })
        .flatten_iter()
        .collect();
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
