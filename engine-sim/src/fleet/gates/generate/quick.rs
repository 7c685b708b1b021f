//! Random numbers by the million: a hash of what they are for seeds them, and normals are sums.

use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a stream is for.
pub(super) const BASE: u64 = 1;
pub(super) const PHASE: u64 = 2;
pub(super) const DOMAIN: u64 = 3;
pub(super) const REQUEST: u64 = 4;
pub(super) const OWN: u64 = 5;
pub(super) const COUNTS: u64 = 6;
pub(super) const TOKENS: u64 = 7;
pub(super) const PLAN: u64 = 8;
pub(super) const WORDS: u64 = 9;
pub(super) const SEARCH: u64 = 10;

pub(super) struct Quick(Xoshiro256PlusPlus);

impl Quick {
    /// The stream of one thing (`number`) for one aspect.
    pub(super) fn new(seed: u64, aspect: u64, number: u64) -> Self {
        let mixed = seed
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .wrapping_add(aspect)
            .wrapping_mul(0xBF58_476D_1CE4_E5B9)
            .wrapping_add(number);
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// In [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// In 0..n, n at least 1. The bias is below n / 2^64.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Nearly standard normal: four 16-bit numbers added (kurtosis 2.7 instead of 3), which is enough for effects and ten times as fast as exact ones.
    pub(super) fn normal(&mut self) -> f32 {
        let bits = self.bits();
        let sum = (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48);
        // Mean 4 x 32767.5, variance 4 x (2^32 - 1) / 12.
        (sum as f32 - 131_070.0) * (1.0 / 37_837.23)
    }
}

/// e^x within 1e-5 of it, for x from -80 to 80 (others are clamped): a power of two by its bits, the rest by a polynomial. Loops over it become
/// vector code, and it gives the same bits on every machine, which the system's function need not.
pub(super) fn exp(x: f32) -> f32 {
    let y = x.clamp(-80.0, 80.0) * std::f32::consts::LOG2_E;
    let whole = y.floor();
    // Taylor of 2^f = e^(f ln 2) around the middle of 0..1, whose error at the ends is smallest there.
    let f = (y - whole - 0.5) * std::f32::consts::LN_2;
    let p = 1.0 + f * (1.0 + f * (0.5 + f * (1.0 / 6.0 + f * (1.0 / 24.0 + f * (1.0 / 120.0 + f / 720.0)))));
    let scale = f32::from_bits(((whole as i32 + 127) as u32) << 23);
    p * std::f32::consts::SQRT_2 * scale
}
