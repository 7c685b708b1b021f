//! Ridge regression in its dual form, everything closed: fits, the errors on samples left out one by one or by groups, and the low-rank
//! map nearest to the fitted values.
//!
//! With kernel K, sample weights W and penalty l: a = (K + l W^-1)^-1 Y. The residual of sample i, had it been left out, is
//! a_i / (K + l W^-1)^-1_ii; of a group g left out at once, ((K + l W^-1)^-1_gg)^-1 a_g.

use super::factor::{eigen, inverse_factor};
use super::products::{gram_f64, products_f32, products_f64, transposed};
use super::samples::GROUPINGS;

/// Samples that choose the penalty; more would not change it.
const PENALTY_SAMPLES: usize = 1024;
/// Penalties tried: half decades from 10^-3 to 10^3, downhill from 1.
const STEPS: std::ops::RangeInclusive<i32> = -6..=6;
/// Directions whose share of the fitted values is below this are noise.
const LEAST_SHARE: f64 = 1e-9;

/// Targets of one regression: rows [N, cells], centred, with their transpose and a sketch.
pub(super) struct Targets {
    pub(super) n: usize,
    pub(super) cells: usize,
    /// [N, cells]
    pub(super) rows: Vec<f32>,
    /// [sketch, N]: the rows times random signs, which keep distances.
    pub(super) sketch: Vec<f64>,
}

/// What the regression found.
pub(super) struct Ridge {
    pub(super) penalty: f64,
    pub(super) rank: usize,
    /// [rank, cells], orthonormal rows.
    pub(super) output: Vec<f32>,
    /// Dual weights [rank, N].
    pub(super) dual: Vec<f64>,
    /// Latent values of each sample had it been left out, [rank, N].
    pub(super) unseen: Vec<f64>,
    /// The same had its whole group been left out; of samples without a group as `unseen`.
    pub(super) unseen_group: [Vec<f64>; GROUPINGS],
}

/// A factored K + penalty W^-1.
struct Solved {
    n: usize,
    /// Rows whose products with each other are the inverse.
    factor: Vec<f64>,
    factor_transposed: Vec<f64>,
}

impl Solved {
    fn new(kernel: &[f64], n: usize, among: usize, weights: &[f64], penalty: f64) -> Option<Self> {
        let mut matrix: Vec<f64> = kernel
            .chunks_exact(n)
            .take(among)
            .flat_map(|row| row[..among].to_vec())
            .collect();
        for (i, weight) in weights.iter().take(among).enumerate() {
            matrix[i * among + i] += penalty / weight;
        }
        let factor = inverse_factor(matrix, among)?;
        Some(Self {
            n: among,
            factor_transposed: transposed(&factor, among),
            factor,
        })
    }

    /// Solutions [m, N] for right-hand sides [m, N].
    fn solve(&self, right: &[f64]) -> Vec<f64> {
        products_f64(
            &products_f64(right, &self.factor_transposed, self.n),
            &self.factor,
            self.n,
        )
    }

    /// Diagonal of the inverse.
    fn diagonal(&self) -> Vec<f64> {
        self.factor
            .chunks_exact(self.n)
            .map(|row| row.iter().map(|v| v * v).sum())
            .collect()
    }
}

/// Fits `targets` on a kernel [N, N]. `groups` has, for each grouping, a group number for each sample, or none. `None` where the kernel is not sound.
pub(super) fn ridge(
    kernel: &[f64],
    targets: &Targets,
    weights: &[f64],
    groups: &[Vec<Option<usize>>; GROUPINGS],
    rank: usize,
) -> Option<Ridge> {
    let n = targets.n;
    let penalty = choose_penalty(kernel, targets, weights)?;
    let solved = Solved::new(kernel, n, n, weights, penalty)?;
    let output = fitted_directions(&solved, targets, weights, penalty, rank)?;
    let rank = output.len() / targets.cells;
    let latent: Vec<f64> = products_f32(&output, &targets.rows, targets.cells)
        .iter()
        .map(|v| f64::from(*v))
        .collect();
    let dual = solved.solve(&latent);
    let diagonal = solved.diagonal();
    let mut unseen = latent.clone();
    for (row, dual) in unseen.chunks_exact_mut(n).zip(dual.chunks_exact(n)) {
        for ((value, a), d) in row.iter_mut().zip(dual).zip(&diagonal) {
            *value -= a / d;
        }
    }
    let unseen_group = groups.each_ref().map(|groups| {
        let mut values = unseen.clone();
        let last = groups.iter().flatten().max().map_or(0, |g| g + 1);
        for group in 0..last {
            let members: Vec<usize> = (0..n).filter(|i| groups.get(*i) == Some(&Some(group))).collect();
            leave_out(&solved, &members, &latent, &dual, &mut values);
        }
        values
    });
    Some(Ridge {
        penalty,
        rank,
        output,
        dual,
        unseen,
        unseen_group,
    })
}

/// The penalty with the least squared error on samples left out one by one.
fn choose_penalty(kernel: &[f64], targets: &Targets, weights: &[f64]) -> Option<f64> {
    let among = targets.n.min(PENALTY_SAMPLES);
    let right: Vec<f64> = targets
        .sketch
        .chunks_exact(targets.n)
        .flat_map(|row| row[..among].to_vec())
        .collect();
    let error = |step: i32| -> Option<f64> {
        let solved = Solved::new(kernel, targets.n, among, weights, penalty_of(step))?;
        let (dual, diagonal) = (solved.solve(&right), solved.diagonal());
        let mut sum = 0.0;
        for row in dual.chunks_exact(among) {
            for ((a, d), w) in row.iter().zip(&diagonal).zip(weights) {
                sum += w * (a / d) * (a / d);
            }
        }
        Some(sum)
    };
    let (mut at, mut best) = (0, error(0)?);
    for direction in [-1, 1] {
        let start = at;
        while STEPS.contains(&(at + direction)) {
            let Some(next) = error(at + direction).filter(|e| *e < best) else {
                break;
            };
            at += direction;
            best = next;
        }
        if at != start {
            break;
        }
    }
    Some(penalty_of(at))
}

fn penalty_of(step: i32) -> f64 {
    // Two steps a decade, from constants, so that no machine's power function has a say.
    let half = if step.rem_euclid(2) == 1 {
        3.162_277_660_168_379_5
    } else {
        1.0
    };
    let mut value = half;
    for _ in 0..step.div_euclid(2).unsigned_abs() {
        value = if step < 0 { value / 10.0 } else { value * 10.0 };
    }
    value
}

/// Orthonormal directions [rank, cells] that hold most of the fitted values, each sample by its weight.
fn fitted_directions(
    solved: &Solved,
    targets: &Targets,
    weights: &[f64],
    penalty: f64,
    rank: usize,
) -> Option<Vec<f32>> {
    let n = targets.n;
    // Fitted sketch: K a = Y - l W^-1 a.
    let dual = solved.solve(&targets.sketch);
    let mut fitted = targets.sketch.clone();
    for (row, dual) in fitted.chunks_exact_mut(n).zip(dual.chunks_exact(n)) {
        for ((value, a), w) in row.iter_mut().zip(dual).zip(weights) {
            *value = (*value - penalty * a / w) * w.sqrt();
        }
    }
    // An orthonormal basis [q, N] of it, then the whole fitted values in that basis.
    let basis = orthonormal(&fitted, n, targets.sketch.len() / n);
    if basis.is_empty() {
        return None;
    }
    let mut weighted = basis;
    weighted
        .chunks_exact_mut(n)
        .for_each(|row| row.iter_mut().zip(weights).for_each(|(v, w)| *v *= w.sqrt()));
    let mut scaled = weighted.clone();
    scaled
        .chunks_exact_mut(n)
        .for_each(|row| row.iter_mut().zip(weights).for_each(|(v, w)| *v /= w));
    let solution = solved.solve(&scaled);
    let smoothed: Vec<f32> = weighted
        .iter()
        .zip(&solution)
        .map(|(v, a)| (v - penalty * a) as f32)
        .collect();
    let fitted = products_f32(&smoothed, &transposed(&targets.rows, targets.cells), n);
    let fitted: Vec<f64> = fitted.iter().map(|v| f64::from(*v)).collect();
    let directions = orthonormal(&fitted, targets.cells, rank);
    (!directions.is_empty()).then(|| directions.iter().map(|v| *v as f32).collect())
}

/// At most `most` orthonormal rows that span the strongest directions of `rows` [m, length].
fn orthonormal(rows: &[f64], length: usize, most: usize) -> Vec<f64> {
    let m = rows.len() / length.max(1);
    let (values, vectors) = eigen(gram_f64(rows, length), m);
    let first = values.first().copied().unwrap_or(0.0);
    let mut out = Vec::new();
    for (value, vector) in values.iter().zip(vectors.chunks_exact(m)).take(most) {
        if !(*value > LEAST_SHARE * first && *value > 0.0) {
            break;
        }
        let mut row = vec![0.0; length];
        for (share, given) in vector.iter().zip(rows.chunks_exact(length)) {
            let share = share / value.sqrt();
            row.iter_mut().zip(given).for_each(|(o, v)| *o += share * v);
        }
        out.extend(row);
    }
    out
}

/// Latent values of a group's members, had all of them been left out.
fn leave_out(solved: &Solved, members: &[usize], latent: &[f64], dual: &[f64], out: &mut [f64]) {
    let (n, g) = (solved.n, members.len());
    if g == 0 {
        return;
    }
    let rows: Vec<f64> = members
        .iter()
        .flat_map(|i| solved.factor[i * n..(i + 1) * n].to_vec())
        .collect();
    let Some(factor) = inverse_factor(gram_f64(&rows, n), g) else {
        return;
    };
    let right: Vec<f64> = dual
        .chunks_exact(n)
        .flat_map(|row| members.iter().map(|i| row[*i]))
        .collect();
    let residuals = products_f64(&products_f64(&right, &transposed(&factor, g), g), &factor, g);
    for ((row, latent), residual) in out
        .chunks_exact_mut(n)
        .zip(latent.chunks_exact(n))
        .zip(residuals.chunks_exact(g))
    {
        for (i, r) in members.iter().zip(residual) {
            row[*i] = latent[*i] - r;
        }
    }
}
