//! Products of the rows of two matrices. Every result is summed by one thread in one order, with products and sums kept apart, so it is
//! the same on every machine and thread count; the code is compiled once per instruction set.

use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;

/// Rows of `a` that one task takes: a panel of `b` is fetched once for all of them.
const ROWS_PER_TASK: usize = 16;
/// Values of a row that are multiplied before the next panel: a panel of a thousand rows fits the second-level cache.
const PANEL: usize = 256;
const LANES: usize = 8;

macro_rules! row_products {
    ($products:ident, $dots:ident, $task:ident, $float:ty) => {
        /// Inner products of A rows with B rows, all of one length.
        #[inline(always)]
        pub(super) fn $dots<const A: usize, const B: usize>(a: [&[$float]; A], b: [&[$float]; B]) -> [[$float; B]; A] {
            let mut sums = [[[0.0; LANES]; B]; A];
            let chunks = a[0].len() / LANES;
            let (a_chunks, b_chunks) = (
                a.map(|r| r.as_chunks::<LANES>().0),
                b.map(|r| r.as_chunks::<LANES>().0),
            );
            let (a_chunks, b_chunks) = (a_chunks.map(|r| &r[..chunks]), b_chunks.map(|r| &r[..chunks]));
            for at in 0..chunks {
                for i in 0..A {
                    for j in 0..B {
                        for lane in 0..LANES {
                            sums[i][j][lane] += a_chunks[i][at][lane] * b_chunks[j][at][lane];
                        }
                    }
                }
            }
            let mut out = [[0.0; B]; A];
            for i in 0..A {
                for j in 0..B {
                    let rest = a[i][chunks * LANES..].iter().zip(&b[j][chunks * LANES..]);
                    let tail: $float = rest.map(|(x, y)| x * y).sum();
                    out[i][j] = sums[i][j].iter().sum::<$float>() + tail;
                }
            }
            out
        }

        struct $task<'a> {
            a: &'a [$float],
            b: &'a [$float],
            length: usize,
            out: &'a mut [$float],
        }

        impl NullaryFnOnce for $task<'_> {
            type Output = ();

            #[inline(always)]
            fn call(self) {
                let rows = self.b.len() / self.length;
                for start in (0..self.length).step_by(PANEL) {
                    let end = (start + PANEL).min(self.length);
                    let part = |of: &'_ [$float], row: usize| {
                        row * self.length + start..(row * self.length + end).min(of.len())
                    };
                    let quads = self.a.chunks(self.length * 4).zip(self.out.chunks_mut(rows * 4));
                    for (a, out) in quads {
                        let here = a.len() / self.length;
                        // Rows that are missing at the end are computed as copies of the last one and not stored.
                        let a_rows: [&[$float]; 4] = std::array::from_fn(|i| &a[part(a, i.min(here - 1))]);
                        for first in (0..rows).step_by(2) {
                            let second = (first + 1).min(rows - 1);
                            let dots = $dots(
                                a_rows,
                                [&self.b[part(self.b, first)], &self.b[part(self.b, second)]],
                            );
                            for (row, pair) in out.chunks_mut(rows).zip(dots) {
                                row[first] += pair[0];
                                if second > first {
                                    row[second] += pair[1];
                                }
                            }
                        }
                    }
                }
            }
        }

        /// [M, N] = a [M, length] times b [N, length] transposed.
        pub(super) fn $products(a: &[$float], b: &[$float], length: usize) -> Vec<$float> {
            let rows = b.len() / length.max(1);
            let mut out = vec![0.0; a.len() / length.max(1) * rows];
            if rows > 0 {
                out.par_chunks_mut(rows * ROWS_PER_TASK)
                    .zip(a.par_chunks(length * ROWS_PER_TASK))
                    .for_each(|(out, a)| Arch::new().dispatch($task { a, b, length, out }));
            }
            out
        }
    };
}

row_products!(products_f32, dots_f32, TaskF32, f32);
row_products!(products_f64, dots_f64, TaskF64, f64);

/// The transpose [columns, rows] of [rows, columns].
pub(super) fn transposed<T: Copy + Default + Send + Sync>(matrix: &[T], columns: usize) -> Vec<T> {
    const TILE: usize = 16;
    let rows = matrix.len() / columns.max(1);
    let mut out = vec![T::default(); matrix.len()];
    if rows > 0 {
        out.par_chunks_mut(rows * TILE).enumerate().for_each(|(tile, out)| {
            for row in 0..rows {
                for (at, line) in out.chunks_mut(rows).enumerate() {
                    line[row] = matrix[row * columns + tile * TILE + at];
                }
            }
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_plain_sum_for_every_shape() {
        for (m, n, k) in [(1, 1, 1), (4, 2, 8), (5, 3, 9), (17, 7, 300), (33, 1, 513)] {
            let a: Vec<f64> = (0..m * k).map(|i| f64::from((i * 37 % 101) as u8) - 50.0).collect();
            let b: Vec<f64> = (0..n * k).map(|i| f64::from((i * 53 % 97) as u8) - 48.0).collect();
            let got = products_f64(&a, &b, k);
            let single: Vec<f32> = products_f32(
                &a.iter().map(|v| *v as f32).collect::<Vec<_>>(),
                &b.iter().map(|v| *v as f32).collect::<Vec<_>>(),
                k,
            );
            for i in 0..m {
                for j in 0..n {
                    let plain: f64 = (0..k).map(|x| a[i * k + x] * b[j * k + x]).sum();
                    // Sums of whole numbers are exact in either width here.
                    assert_eq!(got[i * n + j], plain);
                    assert_eq!(f64::from(single[i * n + j]), plain);
                }
            }
            let back = transposed(&transposed(&a, k), m);
            assert_eq!(back, a);
        }
    }
}
