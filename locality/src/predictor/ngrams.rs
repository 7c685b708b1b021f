//! Text to features: hashed byte n-grams (1 to 4), counted as the bytes arrive.

/// Buckets that n-grams are hashed into. Four times fewer cost 3 % in error on recorded gates, four times more gain less than 1 %, and
/// 16-bit counts of these fit a core's first-level cache.
pub const NGRAM_BUCKETS: u32 = 1 << 14;
const BUCKETS: usize = NGRAM_BUCKETS as usize;
const LONGEST: usize = 4;
/// 2^64 / golden ratio: its high bits depend on every byte of the n-gram.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Counts the byte n-grams of one text. How the text is cut into pushes changes nothing; any bytes are text. Takes 32 KiB whatever the
/// text's length: counts stop at 65535.
#[derive(Clone, Debug)]
pub struct NgramCounter {
    counts: Box<[u16; BUCKETS]>,
    /// The last four bytes, the newest lowest.
    window: u32,
    /// Bytes pushed, counted up to three: how long an n-gram may be at the next byte, less one.
    history: usize,
}

impl Default for NgramCounter {
    fn default() -> Self {
        Self::new()
    }
}

impl NgramCounter {
    /// A counter that has seen no text.
    pub fn new() -> Self {
        Self {
            counts: zeros(),
            window: 0,
            history: 0,
        }
    }

    /// Counter with the n-gram counts of a sample. Buckets out of range are left out.
    pub fn from_ngrams(ngrams: &[(u32, u32)]) -> Self {
        let mut counter = Self::new();
        for (bucket, count) in ngrams {
            if let Some(slot) = counter.counts.get_mut(*bucket as usize) {
                *slot = u16::try_from(*count).unwrap_or(u16::MAX);
            }
        }
        counter
    }

    /// Forgets the text.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.window = 0;
        self.history = 0;
    }

    /// Whether no byte was pushed (or counted by [`Self::from_ngrams`]).
    pub fn is_empty(&self) -> bool {
        self.history == 0 && self.counts.iter().all(|c| *c == 0)
    }

    /// Adds the next bytes of the text.
    pub fn push(&mut self, bytes: &[u8]) {
        let (start, rest) = bytes.split_at(bytes.len().min(LONGEST - 1 - self.history));
        for byte in start {
            self.window = self.window << 8 | u32::from(*byte);
            self.history += 1;
            for n in 1..=self.history {
                self.count(n);
            }
        }
        let mut window = self.window;
        for byte in rest {
            window = window << 8 | u32::from(*byte);
            for n in 1..=LONGEST {
                let slot = &mut self.counts[bucket(n, window)];
                *slot = slot.saturating_add(1);
            }
        }
        self.window = window;
    }

    fn count(&mut self, n: usize) {
        let slot = &mut self.counts[bucket(n, self.window)];
        *slot = slot.saturating_add(1);
    }

    /// Non-zero (bucket, count), buckets ascending: what a [`crate::Sample`] keeps of the text.
    pub fn ngrams(&self) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        self.for_each(|bucket, count| out.push((bucket as u32, u32::from(count))));
        out
    }

    /// Calls `visit` with every non-zero (bucket, count), buckets ascending. Does not allocate.
    #[inline(always)]
    pub(super) fn for_each(&self, mut visit: impl FnMut(usize, u16)) {
        let (blocks, _) = self.counts.as_chunks::<64>();
        for (at, block) in blocks.iter().enumerate() {
            // A bit per bucket: branching on each count would be mispredicted for every other one.
            let mut present = 0u64;
            for (bit, count) in block.iter().enumerate() {
                present |= u64::from(*count != 0) << bit;
            }
            while present != 0 {
                let bit = present.trailing_zeros() as usize;
                present &= present - 1;
                visit(at * 64 + bit, block[bit & 63]);
            }
        }
    }
}

#[allow(clippy::large_stack_arrays)] // Once per counter, and built in place where the compiler optimises.
fn zeros() -> Box<[u16; BUCKETS]> {
    Box::new([0; BUCKETS])
}

/// Bucket of the n-gram in the lowest `n` bytes of the window; below [`BUCKETS`] by construction.
#[inline(always)]
fn bucket(n: usize, window: u32) -> usize {
    let key = u64::from(window & (u32::MAX >> (8 * (LONGEST - n)))) | (n as u64) << 32;
    (key.wrapping_mul(MULTIPLIER) >> 50) as usize & (BUCKETS - 1)
}
