//! Products of many vectors at once, with the same bits on every machine and thread count.
//!
//! Each product is 32 partial sums, each of them added to in order, then folded pairwise. The sums do not depend on each other and nothing is
//! fused, so wider registers do the same additions: kernels are compiled for several instruction sets, chosen at run time, and agree to the
//! last bit. (Matrix libraries are faster still where they fuse multiply and add, but then a table's digest would tell the processor.)
//! Work is spread over threads; each result is computed by one of them.

use pulp::Arch;
use rayon::prelude::*;

/// Independent partial sums of a product: enough to keep vector registers of any width busy.
const LANES: usize = 32;
/// Columns that are worked on before the next ones, so that all units' parts stay in the second-level cache. A multiple of [`LANES`].
const PANEL: usize = 1024;
/// Rows that one task takes together: each panel of the units is fetched once for all of them.
const ROWS_PER_TASK: usize = 8;
/// Pairs that one task takes together.
const PAIRS_PER_TASK: usize = 4096;
/// Columns of a pair's product that are summed before the next pair, so that the rows' parts stay in cache.
const PAIR_PANEL: usize = 512;

type Lanes = [f32; LANES];

/// Inner product of two equally long vectors (the shorter length counts).
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    Arch::new().dispatch(Dot { a, b })
}

/// Similarities [N, K] of N rows to K unit vectors, both of length `dim`.
pub(crate) fn similarities(rows: &[f32], units: &[f32], dim: usize) -> Vec<f32> {
    let dim = dim.max(1);
    let clusters = (units.len() / dim).max(1);
    let mut out = vec![0.0; rows.len() / dim * clusters];
    if units.len() < dim {
        return out;
    }
    let arch = Arch::new();
    out.par_chunks_mut(clusters * ROWS_PER_TASK)
        .zip(rows.par_chunks(dim * ROWS_PER_TASK))
        .for_each(|(out, rows)| arch.dispatch(Block { rows, units, dim, out }));
    out
}

/// Similarities of one row, written to `out`; no threads, no allocation.
pub(crate) fn similarities_of_one(row: &[f32], units: &[f32], out: &mut [f32]) {
    Arch::new().dispatch(Single { row, units, out });
}

/// Cosine distances 1 - a.b of pairs of unit rows; pairs outside the rows are at distance 1.
pub(crate) fn pair_distances(rows: &[f32], dim: usize, pairs: &[(u32, u32)]) -> Vec<f32> {
    let mut out = vec![0.0f32; pairs.len()];
    let arch = Arch::new();
    out.par_chunks_mut(PAIRS_PER_TASK)
        .zip(pairs.par_chunks(PAIRS_PER_TASK))
        .for_each(|(out, pairs)| {
            for start in (0..dim).step_by(PAIR_PANEL) {
                let columns = (start, (start + PAIR_PANEL).min(dim));
                arch.dispatch(PairProducts {
                    rows,
                    dim,
                    columns,
                    pairs,
                    out,
                });
            }
            for product in out {
                *product = 1.0 - *product;
            }
        });
    out
}

/// Products of the given columns of pairs of rows.
pub(crate) fn pair_products(rows: &[f32], dim: usize, columns: (usize, usize), pairs: &[(u32, u32)]) -> Vec<f32> {
    let mut out = vec![0.0f32; pairs.len()];
    Arch::new().dispatch(PairProducts {
        rows,
        dim,
        columns,
        pairs,
        out: &mut out,
    });
    out
}

/// Counts times weights.
pub(crate) fn weigh_counts(counts: &[u32], weights: &[f32], out: &mut [f32]) {
    Arch::new().dispatch(WeighCounts { counts, weights, out });
}

/// Multiplies all values.
pub(crate) fn scale(values: &mut [f32], by: f32) {
    Arch::new().dispatch(Scale { values, by });
}

/// Weighted sum of rows, taken in order.
pub(crate) fn weighted_sum<'a>(rows: impl Iterator<Item = (&'a [f32], f32)>, dim: usize) -> Vec<f32> {
    let mut sum = vec![0.0f32; dim];
    let arch = Arch::new();
    for (row, weight) in rows {
        arch.dispatch(AddScaled {
            sum: &mut sum,
            row,
            weight,
        });
    }
    sum
}

struct Dot<'a> {
    a: &'a [f32],
    b: &'a [f32],
}

struct Single<'a> {
    row: &'a [f32],
    units: &'a [f32],
    out: &'a mut [f32],
}

struct Block<'a> {
    rows: &'a [f32],
    units: &'a [f32],
    dim: usize,
    out: &'a mut [f32],
}

struct PairProducts<'a> {
    rows: &'a [f32],
    dim: usize,
    columns: (usize, usize),
    pairs: &'a [(u32, u32)],
    out: &'a mut [f32],
}

struct AddScaled<'a> {
    sum: &'a mut [f32],
    row: &'a [f32],
    weight: f32,
}

struct WeighCounts<'a> {
    counts: &'a [u32],
    weights: &'a [f32],
    out: &'a mut [f32],
}

struct Scale<'a> {
    values: &'a mut [f32],
    by: f32,
}

// Everything below is compiled once for each instruction set, which it only is when inlined into the dispatcher.
#[allow(clippy::inline_always)]
mod kernels {
    use pulp::{NullaryFnOnce, Simd, WithSimd};

    use super::{AddScaled, Block, Dot, LANES, Lanes, PANEL, PairProducts, Scale, Single, WeighCounts};

    /// Registers that the lanes take where one holds eight.
    const REGISTERS: usize = 4;

    impl WithSimd for Dot<'_> {
        type Output = f32;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> f32 {
            let length = self.a.len().min(self.b.len());
            product(simd, &self.a[..length], &self.b[..length])
        }
    }

    impl WithSimd for Single<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let dim = self.row.len();
            if dim == 0 {
                return;
            }
            let whole = dim / LANES * LANES;
            let mut outs = self.out.chunks_exact_mut(2);
            let mut units = self.units.chunks_exact(dim * 2);
            for (out, two) in (&mut outs).zip(&mut units) {
                let (first, second) = two.split_at(dim);
                let mut lanes = [[0.0; LANES]; 2];
                add_two(simd, &mut lanes, &self.row[..whole], &first[..whole], &second[..whole]);
                out[0] = fold(&lanes[0]) + tail(self.row, first);
                out[1] = fold(&lanes[1]) + tail(self.row, second);
            }
            let last = units.remainder().chunks_exact(dim);
            for (out, unit) in outs.into_remainder().iter_mut().zip(last) {
                *out = product(simd, self.row, unit);
            }
        }
    }

    impl WithSimd for Block<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let (dim, clusters) = (self.dim, self.units.len() / self.dim);
            let mut sums = vec![[0.0f32; LANES]; self.rows.len() / dim * clusters];
            let whole = dim / LANES * LANES;
            for start in (0..whole).step_by(PANEL) {
                let end = (start + PANEL).min(whole);
                let unit = |c: usize| &self.units[c * dim + start..c * dim + end];
                for (row, sums) in self.rows.chunks_exact(dim).zip(sums.chunks_exact_mut(clusters)) {
                    let row = &row[start..end];
                    let (twos, one) = sums.as_chunks_mut::<2>();
                    for (c, two) in twos.iter_mut().enumerate() {
                        add_two(simd, two, row, unit(2 * c), unit(2 * c + 1));
                    }
                    if let [last] = one {
                        add(simd, last, row, unit(clusters - 1));
                    }
                }
            }
            let rows = self.rows.chunks_exact(dim).zip(sums.chunks_exact(clusters));
            for ((row, sums), out) in rows.zip(self.out.chunks_exact_mut(clusters)) {
                for ((unit, lanes), out) in self.units.chunks_exact(dim).zip(sums).zip(out) {
                    *out = fold(lanes) + tail(row, unit);
                }
            }
        }
    }

    impl WithSimd for PairProducts<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let (start, end) = self.columns;
            let part = |i: u32| {
                let row = i as usize * self.dim;
                self.rows.get(row + start..row + end).unwrap_or(&[])
            };
            for (out, (i, j)) in self.out.iter_mut().zip(self.pairs) {
                let (a, b) = (part(*i), part(*j));
                let length = a.len().min(b.len());
                *out += product(simd, &a[..length], &b[..length]);
            }
        }
    }

    impl NullaryFnOnce for AddScaled<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            for (sum, value) in self.sum.iter_mut().zip(self.row) {
                *sum += self.weight * value;
            }
        }
    }

    impl NullaryFnOnce for WeighCounts<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            for ((out, count), weight) in self.out.iter_mut().zip(self.counts).zip(self.weights) {
                *out = *count as f32 * weight;
            }
        }
    }

    impl NullaryFnOnce for Scale<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            for value in self.values.iter_mut() {
                *value *= self.by;
            }
        }
    }

    /// Both have the same length.
    #[inline(always)]
    fn product<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
        let whole = a.len() / LANES * LANES;
        let mut lanes = [0.0; LANES];
        add(simd, &mut lanes, &a[..whole], &b[..whole]);
        fold(&lanes) + tail(a, b)
    }

    /// Adds the products of whole groups of lanes.
    #[inline(always)]
    fn add<S: Simd>(simd: S, lanes: &mut Lanes, a: &[f32], b: &[f32]) {
        if S::F32_LANES * REGISTERS == LANES {
            let mut sums = load(simd, lanes);
            for (x, y) in groups::<S>(a).iter().zip(groups::<S>(b)) {
                step(simd, &mut sums, x, y);
            }
            store::<S>(lanes, &sums);
            return;
        }
        for (x, y) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
            for ((sum, u), v) in lanes.iter_mut().zip(x).zip(y) {
                *sum += u * v;
            }
        }
    }

    /// Two units at once: each part of the row is fetched once for both.
    #[inline(always)]
    fn add_two<S: Simd>(simd: S, lanes: &mut [Lanes; 2], a: &[f32], b: &[f32], c: &[f32]) {
        let [first, second] = lanes;
        if S::F32_LANES * REGISTERS == LANES {
            let (mut one, mut two) = (load(simd, first), load(simd, second));
            for ((x, y), z) in groups::<S>(a).iter().zip(groups::<S>(b)).zip(groups::<S>(c)) {
                step(simd, &mut one, x, y);
                step(simd, &mut two, x, z);
            }
            store::<S>(first, &one);
            store::<S>(second, &two);
            return;
        }
        add(simd, first, a, b);
        add(simd, second, a, c);
    }

    #[inline(always)]
    fn step<S: Simd>(simd: S, sums: &mut [S::f32s; REGISTERS], x: &[S::f32s; REGISTERS], y: &[S::f32s; REGISTERS]) {
        for ((sum, u), v) in sums.iter_mut().zip(x).zip(y) {
            *sum = simd.add_f32s(*sum, simd.mul_f32s(*u, *v));
        }
    }

    #[inline(always)]
    fn groups<S: Simd>(values: &[f32]) -> &[[S::f32s; REGISTERS]] {
        S::as_simd_f32s(values).0.as_chunks().0
    }

    #[inline(always)]
    fn load<S: Simd>(simd: S, lanes: &Lanes) -> [S::f32s; REGISTERS] {
        groups::<S>(lanes)
            .first()
            .copied()
            .unwrap_or([simd.splat_f32s(0.0); REGISTERS])
    }

    #[inline(always)]
    fn store<S: Simd>(lanes: &mut Lanes, sums: &[S::f32s; REGISTERS]) {
        for (lane, sum) in S::as_mut_simd_f32s(lanes).0.iter_mut().zip(sums) {
            *lane = *sum;
        }
    }

    #[inline(always)]
    fn fold(lanes: &Lanes) -> f32 {
        let mut lanes = *lanes;
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                lanes[i] += lanes[i + width];
            }
            width /= 2;
        }
        lanes[0]
    }

    /// What is left of a product after whole groups of lanes.
    #[inline(always)]
    fn tail(a: &[f32], b: &[f32]) -> f32 {
        let rest = |v: &[f32]| v.len() / LANES * LANES;
        let (from_a, from_b) = (rest(a), rest(b));
        a[from_a..].iter().zip(&b[from_b..]).map(|(u, v)| u * v).sum()
    }
}

#[cfg(test)]
#[path = "vectors_tests.rs"]
mod tests;
