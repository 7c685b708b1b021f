//! Counts times weights, and the norm of it, in one pass.

use pulp::{Arch, NullaryFnOnce};

/// Independent partial sums of the squares: enough to keep vector registers of any width busy. Their order is fixed, so the sum is too.
const LANES: usize = 32;

/// Partial sums of squares.
pub(super) type Lanes = [f32; LANES];

/// Writes counts x weights to `out` and adds the squares to `lanes`.
pub(super) fn weigh(counts: &[u32], weights: &[f32], out: &mut [f32], lanes: &mut Lanes) {
    Arch::new().dispatch(Weigh {
        counts,
        weights,
        out,
        lanes,
    });
}

struct Weigh<'a> {
    counts: &'a [u32],
    weights: &'a [f32],
    out: &'a mut [f32],
    lanes: &'a mut Lanes,
}

// Compiled once for each instruction set, which it only is when inlined into the dispatcher.
#[allow(clippy::inline_always)]
impl NullaryFnOnce for Weigh<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let (counts, last_counts) = self.counts.as_chunks::<LANES>();
        let (weights, last_weights) = self.weights.as_chunks::<LANES>();
        let (out, last_out) = self.out.as_chunks_mut::<LANES>();
        let mut lanes = *self.lanes;
        for ((counts, weights), out) in counts.iter().zip(weights).zip(out) {
            for (((count, weight), out), lane) in counts.iter().zip(weights).zip(out).zip(&mut lanes) {
                let value = *count as f32 * weight;
                *out = value;
                *lane += value * value;
            }
        }
        let last = last_counts.iter().zip(last_weights).zip(last_out);
        for (((count, weight), out), lane) in last.zip(&mut lanes) {
            *out = *count as f32 * weight;
            *lane += *out * *out;
        }
        *self.lanes = lanes;
    }
}
