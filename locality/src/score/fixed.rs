//! Vectors in 16-bit fixed point and their products: integers, so the same on every machine whatever the order of the sums.
//!
//! A unit vector is scaled by [`SCALE`] and rounded. Rounding changes a cell by less than a unit, so the norm stays below 32767 + sqrt(D),
//! and by Cauchy-Schwarz no sum of products of two of them, whole or partial, leaves an `i32` below D = 10^8.
//!
//! Rounding is dithered: the cells of a [`Chunk`] have different thresholds. Short prompts leave many cells of the same value, and plain
//! rounding makes the same error in all of them, which adds up; with thresholds all over the unit it averages out.

use pulp::{Arch, NullaryFnOnce};

/// Cells that one register of 256 bits holds.
pub(super) const CELLS: usize = 16;
/// Centroids whose cells lie side by side: each part of a signature is fetched once for all of them, and memory is read as one stream.
pub(super) const GROUP: usize = 8;
/// A vector's norm in fixed point.
pub(super) const SCALE: f32 = 32767.0;

/// Consecutive cells of a vector; the last ones of it are filled up with zeros.
pub(super) type Chunk = [i16; CELLS];
/// The same cells of a group of centroids.
pub(super) type Panel = [Chunk; GROUP];

/// 1.5 x 2^23: added to a number below 2^22 it leaves the rounded number in the low bits, on processors without an instruction for it too.
const ROUNDER: f32 = 12_582_912.0;
/// What is added to a signature's cells before they are rounded.
const DITHER: [f32; CELLS] = dither(7);
/// The same for centroids, in another order.
const CENTROID_DITHER: [f32; CELLS] = dither(5);
/// Panels that the plain kernel goes through once for each centroid before the next ones: few enough for the first-level cache.
const BLOCK: usize = 32;

/// Thresholds evenly spread within half a unit, neighbours far apart: an odd `stride` visits them all. Zero is still rounded to zero.
const fn dither(stride: usize) -> [f32; CELLS] {
    let mut thresholds = [0.0; CELLS];
    let mut at = 0;
    while at < CELLS {
        thresholds[at] = ((at * stride % CELLS) as f32 + 0.5) / CELLS as f32 - 0.5;
        at += 1;
    }
    thresholds
}

/// Rounds up to [`CELLS`] values (-1 to 1) of a unit vector times [`SCALE`].
pub(super) fn centroid_chunk(values: impl Iterator<Item = f64>) -> Chunk {
    let mut cells = [0; CELLS];
    for ((cell, value), dither) in cells.iter_mut().zip(values).zip(CENTROID_DITHER) {
        *cell = (value * f64::from(SCALE) + f64::from(dither)).round() as i16;
    }
    cells
}

/// Rounds `values` (not negative) times `by` to `cells`, at most [`SCALE`] each.
pub(super) fn quantise(values: &[f32], by: f32, cells: &mut [Chunk]) {
    Arch::new().dispatch(Quantise { values, by, cells });
}

/// Sum of the squares of a vector.
pub(super) fn squares(cells: &[Chunk]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return simd.vectorize(wide::Squares { simd, cells });
    }
    plain_product(cells.iter().zip(cells))
}

/// Products of a vector with all centroids of `panels`: group after group, each with as many panels as the vector has chunks.
pub(super) fn products(cells: &[Chunk], panels: &[Panel], out: &mut [[i32; GROUP]]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        simd.vectorize(wide::Products {
            simd,
            cells,
            panels,
            out,
        });
        return;
    }
    plain_products(cells, panels, out);
}

fn plain_products(cells: &[Chunk], panels: &[Panel], out: &mut [[i32; GROUP]]) {
    for (panels, out) in panels.chunks_exact(cells.len().max(1)).zip(out) {
        *out = [0; GROUP];
        for (cells, panels) in cells.chunks(BLOCK).zip(panels.chunks(BLOCK)) {
            for (centroid, sum) in out.iter_mut().enumerate() {
                *sum += plain_product(cells.iter().zip(panels.iter().map(|panel| &panel[centroid])));
            }
        }
    }
}

fn plain_product<'a>(chunks: impl Iterator<Item = (&'a Chunk, &'a Chunk)>) -> i32 {
    let mut lanes = [0i32; CELLS];
    for (a, b) in chunks {
        for ((lane, x), y) in lanes.iter_mut().zip(a).zip(b) {
            *lane += i32::from(*x) * i32::from(*y);
        }
    }
    lanes.iter().sum()
}

struct Quantise<'a> {
    values: &'a [f32],
    by: f32,
    cells: &'a mut [Chunk],
}

// Compiled once for each instruction set, which it only is when inlined into the dispatcher.
#[allow(clippy::inline_always)]
impl NullaryFnOnce for Quantise<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let round = |value: f32, dither: f32| {
            let scaled = value * self.by;
            let limited = if scaled < SCALE { scaled } else { SCALE };
            // The low 16 bits are the number.
            (limited + dither + ROUNDER).to_bits() as i16
        };
        let (whole, rest) = self.values.as_chunks::<CELLS>();
        let (cells, last) = self.cells.split_at_mut(whole.len().min(self.cells.len()));
        for (cells, values) in cells.iter_mut().zip(whole) {
            for ((cell, value), dither) in cells.iter_mut().zip(values).zip(DITHER) {
                *cell = round(*value, dither);
            }
        }
        if let Some(last) = last.first_mut() {
            *last = [0; CELLS];
            for ((cell, value), dither) in last.iter_mut().zip(rest).zip(DITHER) {
                *cell = round(*value, dither);
            }
        }
    }
}

/// The same with the instruction made for it, which compilers do not find: eight sums of two products each.
#[cfg(target_arch = "x86_64")]
#[allow(clippy::inline_always)]
mod wide {
    use pulp::{NullaryFnOnce, cast, i32x8, x86::V3};

    use super::{Chunk, GROUP, Panel};

    pub(super) struct Products<'a> {
        pub(super) simd: V3,
        pub(super) cells: &'a [Chunk],
        pub(super) panels: &'a [Panel],
        pub(super) out: &'a mut [[i32; GROUP]],
    }

    impl NullaryFnOnce for Products<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            let simd = self.simd;
            for (panels, out) in self.panels.chunks_exact(self.cells.len().max(1)).zip(self.out) {
                let mut sums = [simd.splat_i32x8(0); GROUP];
                for (cells, panel) in self.cells.iter().zip(panels) {
                    for (sum, centroid) in sums.iter_mut().zip(panel) {
                        *sum = step(simd, *sum, cells, centroid);
                    }
                }
                *out = sums.map(total);
            }
        }
    }

    pub(super) struct Squares<'a> {
        pub(super) simd: V3,
        pub(super) cells: &'a [Chunk],
    }

    impl NullaryFnOnce for Squares<'_> {
        type Output = i32;

        #[inline(always)]
        fn call(self) -> i32 {
            let mut sums = [self.simd.splat_i32x8(0); 4];
            let (fours, rest) = self.cells.as_chunks::<4>();
            for four in fours {
                for (sum, cells) in sums.iter_mut().zip(four) {
                    *sum = step(self.simd, *sum, cells, cells);
                }
            }
            for (sum, cells) in sums.iter_mut().zip(rest) {
                *sum = step(self.simd, *sum, cells, cells);
            }
            sums.map(total).iter().sum()
        }
    }

    #[inline(always)]
    fn step(simd: V3, sum: i32x8, a: &Chunk, b: &Chunk) -> i32x8 {
        let products = simd.multiply_wrapping_add_adjacent_i16x16(cast(*a), cast(*b));
        simd.wrapping_add_i32x8(sum, products)
    }

    #[inline(always)]
    fn total(sums: i32x8) -> i32 {
        cast::<_, [i32; 8]>(sums).iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    #[test]
    fn wide_and_plain_kernels_give_the_sum_of_products() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
        for (chunks, groups) in [(1, 1), (3, 2), (40, 3), (384, 1), (928, 2)] {
            let vector = |rng: &mut Xoshiro256PlusPlus| -> Chunk { std::array::from_fn(|_| rng.gen_range(-180..=180)) };
            let cells: Vec<Chunk> = (0..chunks).map(|_| vector(&mut rng)).collect();
            let panels: Vec<Panel> = (0..chunks * groups)
                .map(|_| std::array::from_fn(|_| vector(&mut rng)))
                .collect();
            let mut expected = vec![[0; GROUP]; groups];
            for (panels, sums) in panels.chunks(chunks).zip(&mut expected) {
                for (cells, panel) in cells.iter().zip(panels) {
                    for (sum, centroid) in sums.iter_mut().zip(panel) {
                        let products = cells.iter().zip(centroid).map(|(a, b)| i32::from(*a) * i32::from(*b));
                        *sum += products.sum::<i32>();
                    }
                }
            }
            let (mut found, mut plain) = (vec![[1; GROUP]; groups], vec![[2; GROUP]; groups]);
            products(&cells, &panels, &mut found);
            plain_products(&cells, &panels, &mut plain);
            assert_eq!(found, expected);
            assert_eq!(plain, expected);
            let sum: i32 = cells.iter().flatten().map(|c| i32::from(*c).pow(2)).sum();
            assert_eq!((squares(&cells), plain_product(cells.iter().zip(&cells))), (sum, sum));
        }
    }

    /// All of the norm in one cell, and all of it in one lane of one register.
    #[test]
    fn sums_of_unit_vectors_stay_within_32_bits() {
        let mut peak = vec![[0i16; CELLS]; 384];
        peak[7][3] = 32767;
        assert_eq!(squares(&peak), 32767 * 32767);
        let mut lane = vec![[0i16; CELLS]; 928];
        quantise(&[(1.0f32 / 1856.0).sqrt()], SCALE, &mut lane[..1]);
        let cell = lane[0][0];
        for chunk in &mut lane {
            chunk[..2].fill(cell);
        }
        let norm = f64::from(squares(&lane)).sqrt();
        assert!((norm - 32767.0).abs() < 1856f64.sqrt());
    }

    #[test]
    fn values_are_rounded_by_thresholds_and_limited() {
        let mut cells = [[9i16; CELLS]; 5];
        let parts = [[0.0; CELLS], [1.25; CELLS], [300.5; CELLS], [f32::INFINITY; CELLS]];
        quantise(&[parts.as_flattened(), &[32767.0; 3]].concat(), 1.0, &mut cells);
        let sums = cells.map(|chunk| chunk.iter().map(|c| i32::from(*c)).sum::<i32>());
        assert_eq!(sums, [0, 20, 300 * 16 + 8, 32767 * 16, 32767 * 3]);
        let unit = |value: f64| centroid_chunk([value / f64::from(SCALE); CELLS].into_iter());
        assert_eq!(unit(0.0), [0; CELLS]);
        assert_eq!(unit(-32767.0), [-32767; CELLS]);
        assert_eq!(unit(32767.0), [32767; CELLS]);
        assert_eq!(unit(2.75).iter().sum::<i16>(), 44);
    }
}
