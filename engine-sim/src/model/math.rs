//! Small dense kernels, written so that the compiler vectorises them. Every sum has one fixed order, so a token's result
//! does not depend on what else is computed beside it: that is what makes two workers agree bit for bit.

const LANES: usize = 16;

pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_rows, a_rest) = a.as_chunks::<LANES>();
    let (b_rows, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0_f32; LANES];
    for (x, y) in a_rows.iter().zip(b_rows) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0] + a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum::<f32>()
}

/// `out = matrix x`, matrix `[out, x]` in rows.
pub(super) fn matvec(matrix: &[f32], x: &[f32], out: &mut [f32]) {
    for (o, row) in out.iter_mut().zip(matrix.chunks_exact(x.len())) {
        *o = dot(row, x);
    }
}

pub(super) fn axpy(factor: f32, x: &[f32], out: &mut [f32]) {
    for (o, v) in out.iter_mut().zip(x) {
        *o += factor * v;
    }
}

pub(super) fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let scale = 1.0 / (dot(x, x) / x.len() as f32 + eps).sqrt();
    for ((o, v), w) in out.iter_mut().zip(x).zip(weight) {
        *o = v * scale * w;
    }
}

pub(super) fn rms_norm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    let scale = 1.0 / (dot(x, x) / x.len() as f32 + eps).sqrt();
    for (v, w) in x.iter_mut().zip(weight) {
        *v *= scale * w;
    }
}

pub(super) fn softmax(x: &mut [f32]) {
    let most = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for v in x.iter_mut() {
        *v = (*v - most).exp();
        sum += *v;
    }
    for v in x.iter_mut() {
        *v /= sum;
    }
}

pub(super) fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}
