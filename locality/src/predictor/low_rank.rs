//! A linear map of low rank: features -> a few latent values -> [L, E] frequencies.

use super::half_rows::{BLOCK, LARGEST_FACTOR, MAX_RANK, REBIAS, checked, small_value, to_bits};

/// frequencies = offset + output^T (scale * (input^T features)): `input` [features, rank] and `output` [rank, cells] as halves, `scale`
/// \[rank\] and `offset` \[cells\] as floats.
#[derive(Clone, Debug, PartialEq)]
pub struct LowRankMap {
    features: usize,
    cells: usize,
    rank: usize,
    /// [features, rank rounded up to whole blocks]
    input: Vec<u16>,
    /// [cells in blocks, rank, BLOCK]: read once from start to end.
    output: Vec<u16>,
    scale: Vec<f32>,
    offset: Vec<f32>,
}

/// Latent values; those past the rank are 0.
pub(super) type Latent = [f32; MAX_RANK];

impl LowRankMap {
    /// A map from exact matrices, rounded to halves. `None` if lengths do not fit, the rank is not 1 to [`MAX_RANK`], or a value is not
    /// finite.
    pub(super) fn from_exact(input: &[f32], output: &[f32], offset: &[f32], rank: usize) -> Option<Self> {
        // Each latent value is brought to where halves are densest; its scale keeps the product.
        let mut scale = vec![1.0f32; rank];
        let (mut input, mut output) = (input.to_vec(), output.to_vec());
        let cells = offset.len();
        if output.len() != rank * cells {
            return None;
        }
        for (r, s) in scale.iter_mut().enumerate() {
            let row = &mut output[r * cells..(r + 1) * cells];
            let high = row.iter().fold(0.0f32, |m, v| m.max(v.abs()));
            let wide = input.iter().skip(r).step_by(rank).fold(0.0f32, |m, v| m.max(v.abs()));
            if high > 0.0 && wide > 0.0 {
                for value in row {
                    *value /= high;
                }
                input.iter_mut().skip(r).step_by(rank).for_each(|v| *v /= wide);
                *s = high * wide;
            }
        }
        let halves = |values: &[f32]| values.iter().map(|v| to_bits(*v)).collect::<Vec<u16>>();
        Self::from_halves(&halves(&input), &halves(&output), scale, offset.to_vec())
    }

    /// A map from the bits of halves, row-major. `None` as for exact matrices.
    pub(crate) fn from_halves(input: &[u16], output: &[u16], scale: Vec<f32>, offset: Vec<f32>) -> Option<Self> {
        let (rank, cells) = (scale.len(), offset.len());
        if !(1..=MAX_RANK).contains(&rank) || cells == 0 || input.is_empty() {
            return None;
        }
        let features = input.len() / rank;
        if input.len() != features * rank || output.len() != rank * cells {
            return None;
        }
        if scale.iter().chain(&offset).any(|v| !v.is_finite() || v.abs() > 1e9) {
            return None;
        }
        let width = rank.next_multiple_of(BLOCK);
        let mut rows = vec![0u16; features * width];
        for (row, given) in rows.chunks_exact_mut(width).zip(input.chunks_exact(rank)) {
            for (slot, bits) in row.iter_mut().zip(given) {
                *slot = checked(*bits)?;
            }
        }
        let mut tiles = vec![0u16; cells.next_multiple_of(BLOCK) * rank];
        for (r, row) in output.chunks_exact(cells).enumerate() {
            for (cell, bits) in row.iter().enumerate() {
                tiles[(cell / BLOCK * rank + r) * BLOCK + cell % BLOCK] = checked(*bits)?;
            }
        }
        Some(Self {
            features,
            cells,
            rank,
            input: rows,
            output: tiles,
            scale,
            offset,
        })
    }

    /// Rank of the map.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Features it takes.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Cells L x E it gives.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// Bytes it takes in memory.
    pub fn bytes(&self) -> usize {
        (self.input.len() + self.output.len()) * 2 + (self.scale.len() + self.offset.len()) * 4
    }

    /// Bits of `input`, row-major [features, rank].
    pub fn input_halves(&self) -> impl Iterator<Item = u16> + '_ {
        let width = self.rank.next_multiple_of(BLOCK);
        self.input
            .chunks_exact(width)
            .flat_map(|row| row.iter().take(self.rank).copied())
    }

    /// Bits of `output`, row-major [rank, cells].
    pub fn output_halves(&self) -> impl Iterator<Item = u16> + '_ {
        let at = |r: usize, cell: usize| (cell / BLOCK * self.rank + r) * BLOCK + cell % BLOCK;
        (0..self.rank).flat_map(move |r| (0..self.cells).map(move |cell| self.output[at(r, cell)]))
    }

    /// Scale of each latent value.
    pub fn scale(&self) -> &[f32] {
        &self.scale
    }

    /// What the map gives without any feature.
    pub fn offset(&self) -> &[f32] {
        &self.offset
    }

    /// Row of `input` of one feature, as `BLOCKS` blocks.
    #[inline(always)]
    pub(super) fn row<const BLOCKS: usize>(&self, feature: usize) -> Option<&[[u16; BLOCK]; BLOCKS]> {
        let width = BLOCKS * BLOCK;
        let row = self.input.get(feature * width..(feature + 1) * width)?;
        row.as_chunks::<BLOCK>().0.first_chunk::<BLOCKS>()
    }

    /// Blocks of a row of `input`.
    pub(super) fn blocks(&self) -> usize {
        self.rank.div_ceil(BLOCK)
    }

    /// Writes the frequencies of latent values (before their scale) to `out`, [`Self::cells`] long.
    #[inline(always)]
    pub(super) fn expand(&self, latent: &Latent, out: &mut [f32]) {
        let mut scaled = [0.0f32; MAX_RANK];
        for ((s, z), scale) in scaled.iter_mut().zip(latent).zip(&self.scale) {
            *s = (z * scale).clamp(-LARGEST_FACTOR, LARGEST_FACTOR) * REBIAS;
        }
        let scaled = &scaled[..self.rank];
        let tiles = self.output.chunks_exact(self.rank * BLOCK);
        for ((tile, out), offset) in tiles.zip(out.chunks_mut(BLOCK)).zip(self.offset.chunks(BLOCK)) {
            // Two sums, so that one addition need not wait for the last.
            let mut sums = [[0.0f32; BLOCK]; 2];
            let (rows, _) = tile.as_chunks::<BLOCK>();
            let mut pairs = rows.chunks_exact(2).zip(scaled.chunks_exact(2));
            for (rows, z) in &mut pairs {
                if let ([even, odd], [y, z]) = (rows, z) {
                    for i in 0..BLOCK {
                        sums[0][i] += y * small_value(even[i]);
                        sums[1][i] += z * small_value(odd[i]);
                    }
                }
            }
            if self.rank % 2 == 1
                && let (Some(row), Some(z)) = (rows.last(), scaled.last())
            {
                for i in 0..BLOCK {
                    sums[0][i] += z * small_value(row[i]);
                }
            }
            for (i, (out, offset)) in out.iter_mut().zip(offset).enumerate() {
                *out = offset + (sums[0][i & (BLOCK - 1)] + sums[1][i & (BLOCK - 1)]);
            }
        }
    }
}
