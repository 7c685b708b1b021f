//! Matrices kept as 16-bit floats and read as 32-bit ones in plain integer arithmetic, which every compiler turns into vector
//! instructions and which gives the same values on every machine.

use half::f16;

/// Highest rank of a learned map.
pub const MAX_RANK: usize = 64;
/// Values that are read together.
pub(super) const BLOCK: usize = 16;
/// 2^112: moves a half's exponent, read as a float's, to where it belongs.
const REBIAS: f32 = f32::from_bits(0x7780_0000);
const SMALLEST_NORMAL: u16 = 0x0400;
const INFINITE: u16 = 0x7c00;
const LARGEST: f32 = 65504.0;

/// The value of a half that [`to_bits`] or [`checked`] made.
#[inline(always)]
pub(super) fn value(bits: u16) -> f32 {
    let bits = u32::from(bits);
    let magnitude = f32::from_bits((bits & 0x7fff) << 13) * REBIAS;
    f32::from_bits(magnitude.to_bits() | (bits & 0x8000) << 16)
}

/// The nearest half. Values below the normal halves become 0: they are noise here, and slow to multiply on some machines.
pub(super) fn to_bits(value: f32) -> u16 {
    let clamped = value.clamp(-LARGEST, LARGEST);
    flushed(f16::from_f32(clamped).to_bits())
}

/// The bits, if they are those of a finite number; subnormals become 0.
pub(super) fn checked(bits: u16) -> Option<u16> {
    (bits & 0x7fff < INFINITE).then(|| flushed(bits))
}

fn flushed(bits: u16) -> u16 {
    if bits & 0x7fff < SMALLEST_NORMAL { 0 } else { bits }
}
