//! Tokens' choices and prompts' counts from experts' weights.

use super::quick::{Quick, exp};

/// Slots of a layer's lookup table; a power of two, so that a draw is a few random bits.
const SLOT_BITS: u32 = 10;
const SLOTS: usize = 1 << SLOT_BITS;
/// Draws of one token's slot after which the first free expert is taken: only where fewer than top-k experts have any weight.
const MOST_DRAWS: u32 = 200;

/// A layer's experts, each in about as many slots as its share of the weight. Rounding is random, so that shares below one slot count too.
pub(super) struct Layer {
    slots: Vec<u16>,
}

impl Layer {
    pub(super) fn new() -> Self {
        Self { slots: vec![0; SLOTS] }
    }

    /// Fills the slots from weights \[E\], not all zero.
    pub(super) fn fill(&mut self, weights: &[f32], rng: &mut Quick) {
        let scale = SLOTS as f32 / weights.iter().sum::<f32>().max(f32::MIN_POSITIVE);
        let mut upto = rng.unit() as f32;
        let mut at = 0;
        for (expert, weight) in weights.iter().enumerate() {
            upto += weight * scale;
            let end = (upto as usize).min(SLOTS);
            if end > at {
                self.slots[at..end].fill(expert as u16);
                at = end;
            }
        }
        // Rounding of the sum may leave the last slot.
        let last = self.slots[at.saturating_sub(1)];
        self.slots[at..].fill(last);
    }

    /// Draws the experts of all tokens, [tokens, k], into `out` (k ids at `offset` of every `stride` ids).
    pub(super) fn draw(&self, experts: usize, top_k: usize, persistence: f32, rng: &mut Quick, out: &mut Tokens<'_>) {
        let keep = (persistence * 65536.0) as u64;
        let mut bits = Bits { rng, word: 0, left: 0 };
        for token in 0..out.count {
            let mut taken = [0u64; 16];
            let at = token * out.stride + out.offset;
            let mut filled = 0;
            if token > 0 && keep > 0 {
                for slot in 0..top_k {
                    if bits.take(16) < keep {
                        let expert = out.ids[at - out.stride + slot];
                        taken[usize::from(expert) / 64] |= 1 << (expert % 64);
                        out.ids[at + filled] = expert;
                        filled += 1;
                    }
                }
            }
            let mut draws = 0;
            while filled < top_k {
                draws += 1;
                let expert = if draws < MOST_DRAWS {
                    self.slots[bits.take(SLOT_BITS) as usize]
                } else {
                    let free = |e: &usize| taken[e / 64] >> (e % 64) & 1 == 0;
                    (0..experts).find(free).unwrap_or(0) as u16
                };
                let (word, bit) = (usize::from(expert) / 64, 1 << (expert % 64));
                if taken[word] & bit == 0 {
                    taken[word] |= bit;
                    out.ids[at + filled] = expert;
                    filled += 1;
                }
            }
        }
    }
}

/// Where a layer's choices go.
pub(super) struct Tokens<'a> {
    pub(super) ids: &'a mut [u16],
    pub(super) count: usize,
    pub(super) stride: usize,
    pub(super) offset: usize,
}

/// Random bits in small portions.
struct Bits<'a> {
    rng: &'a mut Quick,
    word: u64,
    left: u32,
}

impl Bits<'_> {
    fn take(&mut self, n: u32) -> u64 {
        if self.left < n {
            self.word = self.rng.bits();
            self.left = 64;
        }
        let value = self.word & ((1 << n) - 1);
        self.word >>= n;
        self.left -= n;
        value
    }
}

/// Chances that a token takes each expert, from weights \[E\]: 1 - exp(-x w) with the x that makes them add up to k. Nearly those of drawing k
/// without repetition.
pub(super) fn chances(weights: &[f32], top_k: usize, out: &mut [f32]) {
    let total: f32 = weights.iter().sum();
    let target = top_k as f32;
    if weights.len() == top_k || total <= 0.0 {
        out.fill(target / weights.len() as f32);
        return;
    }
    // Newton from below on a concave function: every step stays below the root.
    let mut x = target / total;
    for _ in 0..24 {
        let (mut sum, mut slope) = (0.0, 0.0);
        for (weight, chance) in weights.iter().zip(out.iter_mut()) {
            let rest = exp(-x * weight);
            *chance = 1.0 - rest;
            sum += *chance;
            slope += weight * rest;
        }
        if target - sum < 2e-3 * target || slope <= 0.0 {
            break;
        }
        x += (target - sum) / slope;
    }
}

/// Counts over `tokens` tokens from chances \[E\], added to `out`: of about the variance that so many draws have, times `spread`, and adding up to
/// tokens x k, none above `tokens`.
pub(super) fn counts(chances: &[f32], tokens: u32, top_k: usize, spread: f32, rng: &mut Quick, out: &mut [u32]) {
    let n = tokens as f32;
    let mut wanted = u64::from(tokens) * top_k as u64;
    let variance = |p: &f32| n * p * (1.0 - p).max(0.0) * spread;
    let noisy: Vec<f32> = chances
        .iter()
        .map(|p| n * p + variance(p).sqrt() * rng.normal())
        .collect();
    // Draws of a fixed number are fewer of one where they are more of another.
    let excess = noisy.iter().sum::<f32>() - wanted as f32;
    let share = excess / chances.iter().map(variance).sum::<f32>().max(f32::MIN_POSITIVE);
    let mut drawn: Vec<u32> = noisy
        .iter()
        .zip(chances)
        // Random rounding keeps rare experts' expectation.
        .map(|(x, p)| (x - share * variance(p) + rng.unit() as f32).clamp(0.0, n) as u32)
        .collect();
    let mut have: u64 = drawn.iter().map(|c| u64::from(*c)).sum();
    // What rounding left over goes to experts by chance, one by one.
    let sum: f32 = chances.iter().sum();
    while have != wanted {
        let mut at = rng.unit() as f32 * sum;
        let found = chances.iter().position(|p| {
            at -= p;
            at < 0.0
        });
        let mut expert = found.unwrap_or(0);
        // The next one that can still take or give.
        let gives = have > wanted;
        for _ in 0..drawn.len() {
            let can = if gives {
                drawn[expert] > 0
            } else {
                drawn[expert] < tokens
            };
            if can {
                break;
            }
            expert = (expert + 1) % drawn.len();
        }
        if gives {
            if drawn[expert] == 0 {
                wanted = have;
            } else {
                drawn[expert] -= 1;
                have -= 1;
            }
        } else if drawn[expert] == tokens {
            wanted = have;
        } else {
            drawn[expert] += 1;
            have += 1;
        }
    }
    for (cell, count) in out.iter_mut().zip(drawn) {
        *cell += count;
    }
}
