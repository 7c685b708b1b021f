//! What a batch of requests is expected to load: for each cell (expert e of layer l) the chance that at least one of them uses it in a
//! step, 1 - prod(1 - p).

use pulp::Arch;

use super::fixed::{SURVIVAL_ONE, negative_log, survival};
use crate::policy::frequencies::ONE;

/// Products added up before 32 bits could overflow: each is at most 2^25. A size that compilers turn into multiply-add instructions.
const BLOCK: usize = 64;

/// Fixed-point 1.0 of a scale.
const SCALE_ONE: u64 = 1 << 8;

/// Sum over a batch of -ln(1 - p) per cell, [L, E]. Adding and taking out are exact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogUnion {
    logs: Box<[u32]>,
}

impl LogUnion {
    pub(super) fn new(cells: usize) -> Self {
        Self {
            logs: vec![0; cells].into(),
        }
    }

    pub(super) fn logs(&self) -> &[u32] {
        &self.logs
    }

    pub(super) fn add(&mut self, frequencies: &[i16]) {
        for (log, p) in self.logs.iter_mut().zip(frequencies) {
            *log = log.wrapping_add(negative_log(*p));
        }
    }

    pub(super) fn remove(&mut self, frequencies: &[i16]) {
        for (log, p) in self.logs.iter_mut().zip(frequencies) {
            *log = log.wrapping_sub(negative_log(*p));
        }
    }
}

/// Writes the chance that a cell is not used to `out`, and answers how many cells are expected to be. `scale` is how many requests each one
/// in the sum stands for.
pub(super) fn survivals(logs: impl Iterator<Item = u32>, scale: f32, out: &mut [i16]) -> f32 {
    let scale = (scale * SCALE_ONE as f32) as u64;
    let mut left = 0u64;
    for (log, cell) in logs.zip(out.iter_mut()) {
        let scaled = (u64::from(log) * scale) / SCALE_ONE;
        *cell = survival(u32::try_from(scaled).unwrap_or(u32::MAX));
        left += u64::from(cell.unsigned_abs());
    }
    let one = u64::from(SURVIVAL_ONE.unsigned_abs());
    (out.len() as u64 * one).saturating_sub(left) as f32 / one as f32
}

/// Experts that a request alone uses in a step.
pub(super) fn frequency_sum(frequencies: &[i16]) -> f64 {
    frequencies.iter().map(|p| i64::from(*p)).sum::<i64>() as f64 / f64::from(ONE)
}

/// Distinct experts that a request adds to a batch: the sum over cells of p x survival. Whole numbers: the same on every machine.
pub(super) fn added(frequencies: &[i16], survivals: &[i16]) -> f64 {
    // Compiled for each width of registers and chosen at run time: twice as fast with wider ones.
    let sum = Arch::new().dispatch(|| {
        let (p, p_rest) = frequencies.as_chunks::<BLOCK>();
        let (s, s_rest) = survivals.as_chunks::<BLOCK>();
        let whole: u64 = p.iter().zip(s).map(|(p, s)| u64::from(products(p, s))).sum();
        whole + u64::from(products(p_rest, s_rest))
    });
    sum as f64 / (f64::from(ONE) * f64::from(SURVIVAL_ONE))
}

/// Of at most [`BLOCK`] pairs, none of them negative.
#[allow(
    clippy::inline_always,
    reason = "runs with the smallest instruction set unless inlined into what pulp compiles for each"
)]
#[inline(always)]
fn products(p: &[i16], s: &[i16]) -> u32 {
    let product = |(p, s): (&i16, &i16)| i32::from(*p).wrapping_mul(i32::from(*s));
    p.iter()
        .zip(s)
        .map(product)
        .fold(0i32, i32::wrapping_add)
        .cast_unsigned()
}
