//! Fixed-point logarithms and exponentials. Whole numbers make sums over a batch exact: what is added can be taken out again without a
//! trace, in any order, with the same result on every machine.

use crate::policy::frequencies::ONE;

/// Steps of a logarithm per unit.
pub(super) const LOG_ONE: u32 = 1 << 12;
/// Fixed-point 1.0 of a survival, the chance that no request of a batch uses an expert.
pub(super) const SURVIVAL_ONE: i16 = 1 << 12;

/// A certain expert is taken as missing once in ten thousand steps: its logarithm must be finite.
const LEAST_SURVIVAL: f64 = 1e-4;
const LOG_ENTRIES: usize = ONE as usize + 1;
/// Steps of the finer exponential table.
const FINE: usize = 64;
/// exp(-10.8) is far below half a step of a survival.
const COARSE: usize = (LOG_ONE as usize * 108 / 10) / FINE;
const EXP_ONE: f64 = 32768.0;

static NEGATIVE_LOG: [u16; LOG_ENTRIES] = negative_logs();
static EXP_COARSE: [u16; COARSE + 1] = exponentials(FINE as f64 / LOG_ONE as f64);
static EXP_FINE: [u16; FINE] = exponentials(1.0 / LOG_ONE as f64);

/// -ln(1 - p) of a frequency in fixed-point.
pub(super) fn negative_log(frequency: i16) -> u32 {
    let index = usize::from(frequency.unsigned_abs()).min(LOG_ENTRIES - 1);
    u32::from(NEGATIVE_LOG[index])
}

/// exp(-x) of a summed logarithm.
pub(super) fn survival(log: u32) -> i16 {
    let log = log as usize;
    let coarse = u32::from(EXP_COARSE[(log / FINE).min(COARSE)]);
    let fine = u32::from(EXP_FINE[log % FINE]);
    // 15 + 15 bits, of which a survival keeps 12.
    ((coarse * fine + (1 << 17)) >> 18) as i16
}

#[expect(clippy::large_stack_arrays, reason = "worked out by the compiler, not on a stack")]
const fn negative_logs() -> [u16; LOG_ENTRIES] {
    let mut table = [0; LOG_ENTRIES];
    let mut i = 0;
    while i < LOG_ENTRIES {
        let left = 1.0 - i as f64 / ONE as f64;
        let left = if left < LEAST_SURVIVAL { LEAST_SURVIVAL } else { left };
        table[i] = (-ln(left) * LOG_ONE as f64 + 0.5) as u16;
        i += 1;
    }
    table
}

/// exp(-i x step) in 15 bits; the last entry of a table that is long enough is 0.
const fn exponentials<const N: usize>(step: f64) -> [u16; N] {
    let mut table = [0; N];
    let factor = 1.0 - step + step * step / 2.0 - step * step * step / 6.0 + step * step * step * step / 24.0;
    let (mut value, mut i) = (EXP_ONE, 0);
    while i < N {
        table[i] = (value + 0.5) as u16;
        value *= factor;
        i += 1;
    }
    table
}

/// ln x for x in (0, 1], by halving and the series of the inverse hyperbolic tangent.
const fn ln(x: f64) -> f64 {
    let (mut mantissa, mut halvings) = (x, 0.0);
    while mantissa < 0.75 {
        mantissa *= 2.0;
        halvings += 1.0;
    }
    let y = (mantissa - 1.0) / (mantissa + 1.0);
    let (mut term, mut sum, mut k) = (y, 0.0, 1);
    while k < 24 {
        sum += term / k as f64;
        term *= y * y;
        k += 2;
    }
    2.0 * sum - halvings * std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_agree_with_the_library() {
        for p in 0..=ONE {
            let exact = -(1.0 - f64::from(p) / f64::from(ONE)).max(LEAST_SURVIVAL).ln();
            let got = f64::from(negative_log(p)) / f64::from(LOG_ONE);
            assert!((got - exact).abs() <= 0.51 / f64::from(LOG_ONE), "{p}: {got} {exact}");
        }
        for log in 0..60_000 {
            let exact = (-f64::from(log) / f64::from(LOG_ONE)).exp();
            let got = f64::from(survival(log)) / f64::from(SURVIVAL_ONE);
            assert!((got - exact).abs() < 2.0e-4, "{log}: {got} {exact}");
        }
        assert_eq!((survival(0), survival(u32::MAX)), (SURVIVAL_ONE, 0));
    }
}
