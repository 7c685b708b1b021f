//! Frequencies per token: a request's own, and keeping predicted ones possible.

use crate::counts::ActivationCounts;
use crate::geometry::Geometry;

const LANES: usize = 8;

/// Writes counts per token to `out` ([L, E], the counts' geometry). `false`, and nothing written, without tokens or with another length.
pub fn own_frequencies(counts: &ActivationCounts, out: &mut [f32]) -> bool {
    if counts.tokens() == 0 || counts.cells().len() != out.len() {
        return false;
    }
    let scale = 1.0 / counts.tokens() as f32;
    out.iter_mut()
        .zip(counts.cells())
        .for_each(|(o, c)| *o = *c as f32 * scale);
    true
}

/// Makes linear predictions possible ones: none negative, and every layer adds up to top-k, as each token chooses that many.
#[inline(always)]
pub(super) fn settle(frequencies: &mut [f32], geometry: &Geometry) {
    let mass = geometry.top_k as f32;
    for layer in frequencies.chunks_exact_mut(geometry.experts) {
        let mut lanes = [0.0f32; LANES];
        let (chunks, rest) = layer.as_chunks_mut::<LANES>();
        for chunk in chunks {
            for (lane, value) in lanes.iter_mut().zip(chunk) {
                *value = value.max(0.0);
                *lane += *value;
            }
        }
        let mut sum: f32 = lanes.iter().sum();
        for value in rest {
            *value = value.max(0.0);
            sum += *value;
        }
        // A layer without any prediction: every expert alike.
        if sum > 1e-6 {
            let scale = mass / sum;
            for value in layer {
                *value *= scale;
            }
        } else {
            layer.fill(mass / geometry.experts as f32);
        }
    }
}
