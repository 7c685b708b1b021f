//! Products of the rows of two matrices. Every result is summed by one thread in one order, with products and sums kept apart, so it is
//! the same on every machine and thread count; the code is compiled once per instruction set.

use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;

/// Rows of `a` that one task takes: a panel of `b` is turned once for all of them.
const ROWS_PER_TASK: usize = 64;
/// Values of each of these rows: a panel fits the first-level cache.
const PANEL: usize = 256;

macro_rules! row_products {
    ($products:ident, $gram:ident, $task:ident, $float:ty, $width:literal) => {
        struct $task<'a> {
            /// Rows of `b` that are needed, from the first.
            wanted: usize,
            a: &'a [$float],
            b: &'a [$float],
            length: usize,
            out: &'a mut [$float],
        }

        impl NullaryFnOnce for $task<'_> {
            type Output = ();

            #[inline(always)]
            fn call(self) {
                const WIDTH: usize = $width;
                let Self {
                    wanted,
                    a,
                    b,
                    length,
                    out,
                } = self;
                let (here, rows) = (a.len() / length, b.len() / length);
                // A panel of b, turned so that one value of WIDTH rows lies together: a lane is a result, and no sum crosses lanes.
                let mut panel = vec![[0.0; WIDTH]; PANEL];
                for first in (0..wanted.min(rows)).step_by(WIDTH) {
                    let wide = WIDTH.min(rows - first);
                    for start in (0..length).step_by(PANEL) {
                        let end = (start + PANEL).min(length);
                        for w in 0..wide {
                            let row = &b[(first + w) * length..][start..end];
                            panel.iter_mut().zip(row).for_each(|(p, v)| p[w] = *v);
                        }
                        for top in (0..here).step_by(4) {
                            // Rows that are missing at the end are computed as copies of the last one and not stored.
                            let row = |i: usize| &a[(top + i).min(here - 1) * length..][start..end];
                            // Touched at fixed places only, so that they stay in registers; what is indexed freely is their copy.
                            let (mut s0, mut s1, mut s2, mut s3) =
                                ([0.0; WIDTH], [0.0; WIDTH], [0.0; WIDTH], [0.0; WIDTH]);
                            let values = row(0).iter().zip(row(1)).zip(row(2)).zip(row(3));
                            for (p, (((x0, x1), x2), x3)) in panel.iter().zip(values) {
                                for w in 0..WIDTH {
                                    s0[w] += x0 * p[w];
                                }
                                for w in 0..WIDTH {
                                    s1[w] += x1 * p[w];
                                }
                                for w in 0..WIDTH {
                                    s2[w] += x2 * p[w];
                                }
                                for w in 0..WIDTH {
                                    s3[w] += x3 * p[w];
                                }
                            }
                            let sums = [s0, s1, s2, s3];
                            let lines = out.chunks_mut(rows).skip(top);
                            for (line, sums) in lines.zip(&sums) {
                                let results = line[first..first + wide].iter_mut().zip(sums);
                                results.for_each(|(o, s)| *o += s);
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
                    .for_each(|(out, a)| {
                        Arch::new().dispatch($task {
                            wanted: rows,
                            a,
                            b,
                            length,
                            out,
                        });
                    });
            }
            out
        }

        /// [M, M] = a [M, length] times itself transposed: half the work, and the very same values.
        pub(super) fn $gram(a: &[$float], length: usize) -> Vec<$float> {
            let rows = a.len() / length.max(1);
            let mut out = vec![0.0; rows * rows];
            if rows > 0 {
                out.par_chunks_mut(rows * ROWS_PER_TASK)
                    .zip(a.par_chunks(length * ROWS_PER_TASK))
                    .enumerate()
                    .for_each(|(task, (out, own))| {
                        Arch::new().dispatch($task {
                            wanted: (task + 1) * ROWS_PER_TASK,
                            a: own,
                            b: a,
                            length,
                            out,
                        });
                    });
                for i in 0..rows {
                    for j in i + 1..rows {
                        out[i * rows + j] = out[j * rows + i];
                    }
                }
            }
            out
        }
    };
}

// Four rows of sums fill half of the registers of the common instruction sets.
row_products!(products_f32, gram_f32, TaskF32, f32, 16);
row_products!(products_f64, gram_f64, TaskF64, f64, 8);

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
        for (m, n, k) in [
            (1, 1, 1),
            (4, 2, 8),
            (5, 3, 9),
            (17, 7, 300),
            (33, 1, 513),
            (150, 3, 20),
        ] {
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
            assert_eq!(gram_f64(&a, k), products_f64(&a, &a, k));
            let back = transposed(&transposed(&a, k), m);
            assert_eq!(back, a);
        }
    }
}
