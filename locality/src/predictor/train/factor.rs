//! Cholesky factors of symmetric matrices, their inverses, and eigenvectors of small ones.

use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;

const BLOCK: usize = 32;
const SWEEPS: usize = 30;
const LANES: usize = 8;

/// Inner products of A rows with B rows, all of one length.
#[inline(always)]
fn dots_f64<const A: usize, const B: usize>(a: [&[f64]; A], b: [&[f64]; B]) -> [[f64; B]; A] {
    let mut sums = [[[0.0; LANES]; B]; A];
    let chunks = a[0].len() / LANES;
    let (a_chunks, b_chunks) = (a.map(|r| r.as_chunks::<LANES>().0), b.map(|r| r.as_chunks::<LANES>().0));
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
            let tail: f64 = rest.map(|(x, y)| x * y).sum();
            out[i][j] = sums[i][j].iter().sum::<f64>() + tail;
        }
    }
    out
}

/// The transposed inverse of the lower Cholesky factor of `matrix` [n, n]: row i is column i of the inverse, zero before i. So the
/// inverse of the matrix is the product of these rows with each other. `None` unless the matrix is positive definite.
pub(super) fn inverse_factor(mut matrix: Vec<f64>, n: usize) -> Option<Vec<f64>> {
    cholesky(&mut matrix, n)?;
    let mut out = vec![0.0; n * n];
    out.par_chunks_mut(n * 4).enumerate().for_each(|(task, rows)| {
        Arch::new().dispatch(Columns {
            factor: &matrix,
            n,
            first: task * 4,
            rows,
        });
    });
    Some(out)
}

/// In place; what is above the diagonal keeps its old values.
fn cholesky(matrix: &mut [f64], n: usize) -> Option<()> {
    for start in (0..n).step_by(BLOCK) {
        let end = (start + BLOCK).min(n);
        let (above, below) = matrix.split_at_mut(start * n);
        let _ = above;
        // Rows of this block before this block: what every row below is multiplied with.
        let done: Vec<f64> = below[..(end - start) * n]
            .chunks_exact(n)
            .flat_map(|row| row[..start].to_vec())
            .collect();
        if start > 0 {
            below.par_chunks_mut(n * 4).for_each(|rows| {
                Arch::new().dispatch(Update {
                    rows,
                    n,
                    start,
                    done: &done,
                });
            });
        }
        let (own, rest) = below.split_at_mut((end - start) * n);
        for i in 0..end - start {
            for j in 0..=i {
                let (row, other) = (
                    &own[i * n + start..i * n + start + j],
                    &own[j * n + start..j * n + start + j],
                );
                let sum = own[i * n + start + j] - row.iter().zip(other).map(|(x, y)| x * y).sum::<f64>();
                if i == j {
                    if !(sum > 0.0 && sum.is_finite()) {
                        return None;
                    }
                    own[i * n + start + j] = sum.sqrt();
                } else {
                    own[i * n + start + j] = sum / own[j * n + start + j];
                }
            }
        }
        rest.par_chunks_mut(n).for_each(|row| {
            for j in 0..end - start {
                let pivot = &own[j * n + start..=j * n + start + j];
                let sum: f64 = row[start..start + j].iter().zip(pivot).map(|(x, y)| x * y).sum();
                row[start + j] = (row[start + j] - sum) / pivot[j];
            }
        });
    }
    Some(())
}

struct Update<'a> {
    rows: &'a mut [f64],
    n: usize,
    start: usize,
    done: &'a [f64],
}

impl NullaryFnOnce for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { rows, n, start, done } = self;
        let here = rows.len() / n;
        let block = done.len() / start;
        let mut sums = [[0.0; BLOCK]; 4];
        {
            let a: [&[f64]; 4] = std::array::from_fn(|i| &rows[i.min(here - 1) * n..][..start]);
            for j in (0..block).step_by(2) {
                let other = (j + 1).min(block - 1);
                let dots = dots_f64(a, [&done[j * start..][..start], &done[other * start..][..start]]);
                for (sums, pair) in sums.iter_mut().zip(dots) {
                    sums[j] = pair[0];
                    sums[other] = if other > j { pair[1] } else { pair[0] };
                }
            }
        }
        for (row, sums) in rows.chunks_exact_mut(n).zip(&sums) {
            for (value, sum) in row[start..start + block].iter_mut().zip(sums) {
                *value -= sum;
            }
        }
    }
}

struct Columns<'a> {
    factor: &'a [f64],
    n: usize,
    first: usize,
    rows: &'a mut [f64],
}

impl NullaryFnOnce for Columns<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { factor, n, first, rows } = self;
        let here = rows.len() / n;
        for j in first..n {
            let line = &factor[j * n..][..n];
            let dots = {
                let x: [&[f64]; 4] = std::array::from_fn(|i| &rows[i.min(here - 1) * n..][first..j]);
                dots_f64(x, [&line[first..j]])
            };
            for (i, (row, sum)) in rows.chunks_exact_mut(n).zip(dots).enumerate() {
                if j >= first + i {
                    let unit = if j == first + i { 1.0 } else { 0.0 };
                    row[j] = (unit - sum[0]) / line[j];
                }
            }
        }
    }
}

/// Eigenvalues, descending, and their eigenvectors as rows, of a symmetric matrix [n, n]; cyclic Jacobi rotations.
pub(super) fn eigen(mut a: Vec<f64>, n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut vectors = vec![0.0; n * n];
    (0..n).for_each(|i| vectors[i * n + i] = 1.0);
    let scale: f64 = a.iter().map(|v| v * v).sum();
    for _ in 0..SWEEPS {
        let off: f64 = (0..n)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .map(|(i, j)| a[i * n + j] * a[i * n + j])
            .sum();
        if off <= 1e-24 * scale {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let between = a[p * n + q];
                if between == 0.0 {
                    continue;
                }
                let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * between);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                rotate_rows(&mut a, n, p, q, c, s);
                for row in a.chunks_exact_mut(n) {
                    let (x, y) = (row[p], row[q]);
                    row[p] = c * x - s * y;
                    row[q] = s * x + c * y;
                }
                rotate_rows(&mut vectors, n, p, q, c, s);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|x, y| a[y * n + y].total_cmp(&a[x * n + x]));
    let values = order.iter().map(|i| a[i * n + i]).collect();
    let rows = order
        .iter()
        .flat_map(|i| vectors[i * n..(i + 1) * n].to_vec())
        .collect();
    (values, rows)
}

fn rotate_rows(matrix: &mut [f64], n: usize, p: usize, q: usize, c: f64, s: f64) {
    let (head, tail) = matrix.split_at_mut(q * n);
    let (upper, lower) = (&mut head[p * n..(p + 1) * n], &mut tail[..n]);
    for (x, y) in upper.iter_mut().zip(lower) {
        let (old_x, old_y) = (*x, *y);
        *x = c * old_x - s * old_y;
        *y = s * old_x + c * old_y;
    }
}

#[cfg(test)]
mod tests {
    use super::super::products::{products_f64, transposed};
    use super::*;

    fn positive(n: usize) -> Vec<f64> {
        let rows: Vec<f64> = (0..n * 7)
            .map(|i| f64::from((i * i * 31 % 103) as u8) / 50.0 - 1.0)
            .collect();
        let mut matrix = products_f64(&rows, &rows, 7);
        (0..n).for_each(|i| matrix[i * n + i] += 0.5);
        matrix
    }

    #[test]
    fn inverse_times_matrix_is_one() {
        for n in [1, 2, 5, 32, 33, 71, 130] {
            let matrix = positive(n);
            let factor = inverse_factor(matrix.clone(), n).unwrap();
            let product = products_f64(&products_f64(&factor, &factor, n), &transposed(&matrix, n), n);
            for (at, value) in product.iter().enumerate() {
                let expected = f64::from(u8::from(at / n == at % n));
                assert!((value - expected).abs() < 1e-9, "n {n} at {at}: {value}");
            }
        }
        assert!(inverse_factor(vec![1.0, 2.0, 2.0, 1.0], 2).is_none());
        assert!(inverse_factor(vec![f64::NAN], 1).is_none());
    }

    #[test]
    fn eigenvectors_rebuild_the_matrix() {
        let n = 20;
        let matrix = positive(n);
        let (values, vectors) = eigen(matrix.clone(), n);
        assert!(values.windows(2).all(|w| w[0] >= w[1]));
        for i in 0..n {
            for j in 0..n {
                let sum: f64 = (0..n)
                    .map(|k| values[k] * vectors[k * n + i] * vectors[k * n + j])
                    .sum();
                assert!((sum - matrix[i * n + j]).abs() < 1e-9);
            }
        }
    }
}
