//! The two learned maps: of text, and of prefill frequencies.

use std::sync::OnceLock;

use pulp::{Arch, NullaryFnOnce};

use super::frequencies::settle;
use super::half_rows::{BLOCK, LARGEST_FACTOR, MAX_RANK, REBIAS, small_value};
use super::low_rank::{Latent, LowRankMap};
use super::ngrams::{NGRAM_BUCKETS, NgramCounter};
use crate::counts::ActivationCounts;
use crate::geometry::Geometry;

const TABULATED: usize = 1024;

/// ln(1 + count): a bucket's feature before normalisation.
#[inline(always)]
pub(super) fn log_count(table: &[f32; TABULATED], count: u16) -> f32 {
    match table.get(usize::from(count)) {
        Some(value) => *value,
        None => f64::from(count).ln_1p() as f32,
    }
}

pub(super) fn log_counts() -> &'static [f32; TABULATED] {
    static TABLE: OnceLock<[f32; TABULATED]> = OnceLock::new();
    TABLE.get_or_init(|| std::array::from_fn(|count| (count as f64).ln_1p() as f32))
}

/// Decode frequencies from text.
#[derive(Clone, Debug, PartialEq)]
pub struct TextMap {
    map: LowRankMap,
    /// How well calibration knows each bucket, 0..=255.
    known: Vec<u8>,
}

impl TextMap {
    /// `known` has one value per bucket; `None` if the sizes do not fit.
    pub(crate) fn new(map: LowRankMap, known: Vec<u8>) -> Option<Self> {
        (map.features() == NGRAM_BUCKETS as usize && known.len() == map.features()).then_some(Self { map, known })
    }

    /// The linear map.
    pub fn map(&self) -> &LowRankMap {
        &self.map
    }

    /// Bytes it takes in memory.
    pub fn bytes(&self) -> usize {
        self.map.bytes() + self.known.len()
    }

    /// How well calibration knows each bucket, 0..=255.
    pub fn known(&self) -> &[u8] {
        &self.known
    }

    /// Writes the frequencies [L, E] to expect of this text to `out`, settled, and returns the share (0..1) of the text that calibration
    /// knows. Lengths were checked by the caller.
    pub(super) fn predict(&self, text: &NgramCounter, geometry: &Geometry, out: &mut [f32]) -> f32 {
        match self.map.blocks() {
            1 => self.run::<1>(text, geometry, out),
            2 => self.run::<2>(text, geometry, out),
            3 => self.run::<3>(text, geometry, out),
            _ => self.run::<4>(text, geometry, out),
        }
    }

    fn run<const BLOCKS: usize>(&self, text: &NgramCounter, geometry: &Geometry, out: &mut [f32]) -> f32 {
        Arch::new().dispatch(TextTask::<BLOCKS> {
            map: self,
            text,
            geometry,
            out,
        })
    }
}

/// Compiled once per instruction set; products and sums stay apart and in one order, so every machine gets the same numbers.
struct TextTask<'a, const BLOCKS: usize> {
    map: &'a TextMap,
    text: &'a NgramCounter,
    geometry: &'a Geometry,
    out: &'a mut [f32],
}

impl<const BLOCKS: usize> NullaryFnOnce for TextTask<'_, BLOCKS> {
    type Output = f32;

    #[inline(always)]
    fn call(self) -> f32 {
        let logs = log_counts();
        let mut sums = [[0.0f32; BLOCK]; BLOCKS];
        let (mut squares, mut known) = (0.0f32, 0.0f32);
        self.text.for_each(|bucket, count| {
            let feature = log_count(logs, count);
            squares += feature * feature;
            known += feature * feature * f32::from(self.map.known.get(bucket).copied().unwrap_or(0));
            let factor = feature * REBIAS;
            if let Some(row) = self.map.map.row::<BLOCKS>(bucket) {
                for (sums, row) in sums.iter_mut().zip(row) {
                    for (sum, bits) in sums.iter_mut().zip(row) {
                        *sum += factor * small_value(*bits);
                    }
                }
            }
        });
        let scale = if squares > 0.0 { 1.0 / squares.sqrt() } else { 0.0 };
        self.map.map.expand(&latent(&sums, scale), self.out);
        settle(self.out, self.geometry);
        known * scale * scale / 255.0
    }
}

#[inline(always)]
fn latent<const BLOCKS: usize>(sums: &[[f32; BLOCK]; BLOCKS], scale: f32) -> Latent {
    let mut latent = [0.0; MAX_RANK];
    for (slot, sum) in latent.iter_mut().zip(sums.as_flattened()) {
        *slot = sum * scale;
    }
    latent
}

/// Decode frequencies from prefill frequencies.
#[derive(Clone, Debug, PartialEq)]
pub struct PrefillMap {
    map: LowRankMap,
}

impl PrefillMap {
    /// `None` unless features and cells are equally many.
    pub(crate) fn new(map: LowRankMap) -> Option<Self> {
        (map.features() == map.cells()).then_some(Self { map })
    }

    /// The linear map.
    pub fn map(&self) -> &LowRankMap {
        &self.map
    }

    /// Writes the frequencies [L, E] to expect of a request with these prefill counts to `out`, settled. Lengths and tokens were checked
    /// by the caller.
    pub(super) fn predict(&self, prefill: &ActivationCounts, geometry: &Geometry, out: &mut [f32]) {
        match self.map.blocks() {
            1 => self.run::<1>(prefill, geometry, out),
            2 => self.run::<2>(prefill, geometry, out),
            3 => self.run::<3>(prefill, geometry, out),
            _ => self.run::<4>(prefill, geometry, out),
        }
    }

    fn run<const BLOCKS: usize>(&self, prefill: &ActivationCounts, geometry: &Geometry, out: &mut [f32]) {
        Arch::new().dispatch(PrefillTask::<BLOCKS> {
            map: &self.map,
            prefill,
            geometry,
            out,
        });
    }
}

struct PrefillTask<'a, const BLOCKS: usize> {
    map: &'a LowRankMap,
    prefill: &'a ActivationCounts,
    geometry: &'a Geometry,
    out: &'a mut [f32],
}

impl<const BLOCKS: usize> NullaryFnOnce for PrefillTask<'_, BLOCKS> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let scale = 1.0 / (self.prefill.tokens().max(1) as f32);
        let mut sums = [[0.0f32; BLOCK]; BLOCKS];
        for (cell, count) in self.prefill.cells().iter().enumerate() {
            if *count > 0
                && let Some(row) = self.map.row::<BLOCKS>(cell)
            {
                let factor = (*count as f32 * scale).min(LARGEST_FACTOR) * REBIAS;
                for (sums, row) in sums.iter_mut().zip(row) {
                    for (sum, bits) in sums.iter_mut().zip(row) {
                        *sum += factor * small_value(*bits);
                    }
                }
            }
        }
        self.map.expand(&latent(&sums, 1.0), self.out);
        settle(self.out, self.geometry);
    }
}
