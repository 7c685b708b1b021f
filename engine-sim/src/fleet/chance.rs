//! Seeded draws from the distributions that workloads and generated gates need.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator of one aspect of one run: changing how often one aspect draws leaves the others as they were.
pub(super) fn stream(seed: u64, aspect: u64) -> Xoshiro256PlusPlus {
    // An odd multiplier keeps (seed, aspect) pairs apart; seeding spreads the bits.
    Xoshiro256PlusPlus::seed_from_u64(seed ^ aspect.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// In (0, 1]: its logarithm is finite.
fn positive(rng: &mut impl Rng) -> f64 {
    1.0 - rng.r#gen::<f64>()
}

/// Exponential of this mean.
pub(super) fn exponential(rng: &mut impl Rng, mean: f64) -> f64 {
    -positive(rng).ln() * mean
}

/// Standard normal (Box and Muller, one of the pair).
pub(super) fn normal(rng: &mut impl Rng) -> f64 {
    (-2.0 * positive(rng).ln()).sqrt() * (std::f64::consts::TAU * rng.r#gen::<f64>()).cos()
}

/// Gamma of this shape and mean (Marsaglia and Tsang).
pub(super) fn gamma(rng: &mut impl Rng, shape: f64, mean: f64) -> f64 {
    if shape < 1.0 {
        // A gamma of shape + 1 times u^(1 / shape) has shape `shape`; its mean is that of shape + 1 times shape / (shape + 1).
        let larger = gamma(rng, shape + 1.0, mean * (shape + 1.0) / shape);
        return larger * positive(rng).powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && positive(rng).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v * mean / shape;
        }
    }
}
