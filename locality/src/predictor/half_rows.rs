//! Matrices kept as 16-bit floats and read as 32-bit ones in plain integer arithmetic, which every compiler turns into vector
//! instructions and which gives the same values on every machine.

use half::f16;

/// Highest rank of a learned map.
pub const MAX_RANK: usize = 64;
/// Values that are read together.
pub(super) const BLOCK: usize = 16;
/// 2^112: a half's exponent, read as a float's, is this much too small.
pub(super) const REBIAS: f32 = f32::from_bits(0x7780_0000);
const SMALLEST_NORMAL: u16 = 0x0400;
/// Factors that are multiplied with [`REBIAS`] stay below this.
pub(super) const LARGEST_FACTOR: f32 = 16384.0;
const INFINITE: u16 = 0x7c00;
const LARGEST: f32 = 65504.0;

/// The value of a half that [`to_bits`] or [`checked`] made, divided by [`REBIAS`]: multiply it with something that was multiplied so.
/// Both are powers of two, so nothing is lost.
#[inline(always)]
pub(super) fn small_value(bits: u16) -> f32 {
    // The sign is spread by the wider type, then all but sign, exponent and mantissa is cut away.
    f32::from_bits(((i32::from(bits as i16) << 13) as u32) & 0x8fff_e000)
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
