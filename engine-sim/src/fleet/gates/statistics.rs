//! What matters about a set of gates, in a handful of numbers.

use std::collections::BTreeMap;

use coterie_locality::Geometry;
use coterie_locality::spearman::{sample_pairs, spearman};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::{ExpertSet, Recording};

/// Batch sizes of the distinct-expert curve.
pub const BATCHES: [u32; 6] = [1, 4, 16, 32, 64, 128];
/// Batch size at which same-domain batches are compared with mixed ones.
pub const DOMAIN_BATCH: usize = 16;

/// Statistics of gates. A field that is `None` or absent could not be had, or as a target is free.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Statistics {
    /// Per-expert prefill-decode correlation: Pearson over a layer's experts of mean prefill and mean decode frequency; mean of the layers.
    pub expert_correlation: Option<f64>,
    /// Spearman over request pairs of the cosine distance of prefill counts and that of decode counts.
    pub rho: Option<f64>,
    /// Mean distinct experts of a layer in a step of this many requests of the whole mix, each at a random token.
    pub distinct: BTreeMap<u32, f64>,
    /// By how much fewer a batch of 16 of one domain has, 0..1.
    pub domain_saving: Option<f64>,
    /// Mean cosine of the decode counts of two requests of one domain.
    pub overlap_within: Option<f64>,
    /// The same of two domains.
    pub overlap_between: Option<f64>,
    /// Share of a token's experts that the token before it had too.
    pub kept: Option<f64>,
}

impl Statistics {
    /// Statistics of a recording, from at most `pairs` pairs and as many batches as `pairs / 100` of each size, drawn with the seed.
    pub fn of(recording: &Recording, pairs: usize, seed: u64) -> Self {
        if recording.len() < 2 {
            return Self::default();
        }
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let rows = |f: &dyn Fn(usize) -> Vec<f32>| -> Vec<Vec<f32>> { (0..recording.len()).map(f).collect() };
        let prefill = rows(&|r| recording.requests[r].prefill_frequencies());
        let decode = rows(&|r| recording.requests[r].decode_frequencies());
        let (rho, overlaps) = pairwise(recording, &unit(&prefill), &unit(&decode), pairs, seed);
        let batches = (pairs / 100).max(8);
        let all: Vec<usize> = (0..recording.len()).collect();
        let mut curve = |size: u32| mean_distinct(recording, &all, size as usize, batches, &mut rng);
        let distinct = BATCHES.iter().filter_map(|b| Some((*b, curve(*b)?))).collect();
        Self {
            expert_correlation: correlation(&recording.geometry, &mean(&prefill), &mean(&decode)),
            rho,
            distinct,
            domain_saving: saving(recording, batches, &mut rng),
            overlap_within: overlaps.0,
            overlap_between: overlaps.1,
            kept: kept(recording),
        }
    }
}

fn unit(rows: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let scaled = |row: &Vec<f32>| {
        let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        row.iter().map(|v| v / norm).collect()
    };
    rows.iter().map(scaled).collect()
}

fn mean(rows: &[Vec<f32>]) -> Vec<f64> {
    let mut sum = vec![0.0; rows.first().map_or(0, Vec::len)];
    for row in rows {
        sum.iter_mut().zip(row).for_each(|(s, v)| *s += f64::from(*v));
    }
    sum.iter().map(|s| s / rows.len() as f64).collect()
}

fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    let n = x.len() as f64;
    let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (a, b) in x.iter().zip(y) {
        xx += (a - mx).powi(2);
        yy += (b - my).powi(2);
        xy += (a - mx) * (b - my);
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

fn correlation(geometry: &Geometry, prefill: &[f64], decode: &[f64]) -> Option<f64> {
    let layers = prefill
        .chunks_exact(geometry.experts)
        .zip(decode.chunks_exact(geometry.experts));
    let found: Vec<f64> = layers.filter_map(|(x, y)| pearson(x, y)).collect();
    (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
}

type Overlaps = (Option<f64>, Option<f64>);

fn pairwise(
    recording: &Recording,
    prefill: &[Vec<f32>],
    decode: &[Vec<f32>],
    pairs: usize,
    seed: u64,
) -> (Option<f64>, Overlaps) {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    let (mut signal, mut target) = (Vec::new(), Vec::new());
    let (mut within, mut between) = ((0.0, 0u32), (0.0, 0u32));
    for (i, j) in sample_pairs(recording.len(), pairs, seed) {
        let (i, j) = (i as usize, j as usize);
        let overlap = dot(&decode[i], &decode[j]);
        signal.push(1.0 - dot(&prefill[i], &prefill[j]));
        target.push(1.0 - overlap);
        if let ([a], [b]) = (&recording.requests[i].domains[..], &recording.requests[j].domains[..]) {
            let sum = if a == b { &mut within } else { &mut between };
            sum.0 += f64::from(overlap);
            sum.1 += 1;
        }
    }
    let mean = |(sum, n): (f64, u32)| (n > 0).then(|| sum / f64::from(n));
    (spearman(&signal, &target), (mean(within), mean(between)))
}

/// Mean distinct experts of a layer over batches of `size` of these requests; `None` if there are too few requests.
fn mean_distinct(
    recording: &Recording,
    pool: &[usize],
    size: usize,
    batches: usize,
    rng: &mut Xoshiro256PlusPlus,
) -> Option<f64> {
    if pool.len() < size {
        return None;
    }
    let mut set = ExpertSet::new(&recording.geometry);
    let mut total = 0u64;
    for _ in 0..batches {
        set.clear();
        for request in pool.choose_multiple(rng, size) {
            let decode = &recording.requests[*request].decode;
            decode.add_to(rng.gen_range(0..decode.tokens().max(1)), &mut set);
        }
        total += u64::from(set.total());
    }
    Some(total as f64 / (batches * recording.geometry.layers) as f64)
}

fn saving(recording: &Recording, batches: usize, rng: &mut Xoshiro256PlusPlus) -> Option<f64> {
    let mut pools: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (i, request) in recording.requests.iter().enumerate() {
        if let [domain] = request.domains[..] {
            pools.entry(domain).or_default().push(i);
        }
    }
    pools.retain(|_, pool| pool.len() >= DOMAIN_BATCH);
    if pools.len() < 2 {
        return None;
    }
    let each = (batches * 4 / pools.len()).max(4);
    let mut same = 0.0;
    for pool in pools.values() {
        same += mean_distinct(recording, pool, DOMAIN_BATCH, each, rng)?;
    }
    let mixed: Vec<usize> = pools.values().flatten().copied().collect();
    let mixed = mean_distinct(recording, &mixed, DOMAIN_BATCH, batches * 4, rng)?;
    Some(1.0 - same / pools.len() as f64 / mixed)
}

fn kept(recording: &Recording) -> Option<f64> {
    let geometry = recording.geometry;
    let (mut before, mut now) = (ExpertSet::new(&geometry), ExpertSet::new(&geometry));
    let (mut kept, mut all) = (0u64, 0u64);
    for request in recording.requests.iter().take(200) {
        for token in 1..request.decode.tokens().min(128) {
            before.clear();
            now.clear();
            request.decode.add_to(token - 1, &mut before);
            request.decode.add_to(token, &mut now);
            let common = before
                .words()
                .iter()
                .zip(now.words())
                .map(|(a, b)| (a & b).count_ones());
            kept += u64::from(common.sum::<u32>());
            all += geometry.ids_per_token() as u64;
        }
    }
    (all > 0).then(|| kept as f64 / all as f64)
}
