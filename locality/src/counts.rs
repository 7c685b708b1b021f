//! Activation counts: how often each expert of each layer was chosen over a set of tokens.

use crate::geometry::Geometry;

/// An expert id as engines store it.
pub trait ExpertId: Copy {
    /// The id as an index; values outside `usize` (negative ids) become `usize::MAX`.
    fn index(self) -> usize;
}

impl ExpertId for u8 {
    fn index(self) -> usize {
        usize::from(self)
    }
}

impl ExpertId for u16 {
    fn index(self) -> usize {
        usize::from(self)
    }
}

impl ExpertId for i32 {
    fn index(self) -> usize {
        usize::try_from(self).unwrap_or(usize::MAX)
    }
}

/// Which rows of an engine's per-layer arrays are the model's MoE layers: engines that count dense layers return a row for those too,
/// with ids that mean nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoeLayers {
    /// Layers of the arrays, dense ones included.
    total: usize,
    /// Which of them have experts, ascending.
    moe: Vec<usize>,
}

/// A list of MoE layers that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoeLayersError {
    /// Unsorted, repeated, empty or beyond the last layer.
    #[error("MoE layers must be ascending, at least one, and below the engine's {total} layers")]
    Order {
        /// Layers of the engine's arrays.
        total: usize,
    },
    /// More or fewer than the geometry has.
    #[error("{got} MoE layers are named, the model's geometry has {expected}")]
    Number {
        /// Layers named.
        got: usize,
        /// Layers of the geometry.
        expected: usize,
    },
}

impl MoeLayers {
    /// Every row is a MoE layer.
    pub fn all(geometry: &Geometry) -> Self {
        Self {
            total: geometry.layers,
            moe: (0..geometry.layers).collect(),
        }
    }

    /// The rows `moe` (from 0, ascending) of `total`; as many as the geometry has layers.
    pub fn of(geometry: &Geometry, total: usize, moe: Vec<usize>) -> Result<Self, MoeLayersError> {
        let ascending = moe.windows(2).all(|w| w[0] < w[1]);
        if !ascending || moe.last().is_none_or(|last| *last >= total) {
            return Err(MoeLayersError::Order { total });
        }
        if moe.len() != geometry.layers {
            return Err(MoeLayersError::Number {
                got: moe.len(),
                expected: geometry.layers,
            });
        }
        Ok(Self { total, moe })
    }

    /// All rows but the first `dense`, as in DeepSeek's models.
    pub fn after_dense(geometry: &Geometry, dense: usize) -> Self {
        let total = dense.saturating_add(geometry.layers);
        Self {
            total,
            moe: (dense..total).collect(),
        }
    }

    /// Layers of the arrays, dense ones included.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The rows that are MoE layers, ascending.
    pub fn moe(&self) -> &[usize] {
        &self.moe
    }
}

/// Activation counts [L, E] with the number of tokens they were taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivationCounts {
    geometry: Geometry,
    tokens: u64,
    cells: Vec<u32>,
}

/// Why counts could not be made or combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountsError {
    /// The number of ids or cells does not fit the geometry.
    #[error("activation counts: {got} values where {expected} were expected")]
    Length {
        /// Values given.
        got: usize,
        /// Values that geometry and token count ask for.
        expected: usize,
    },
    /// An expert id outside the geometry.
    #[error(
        "activation counts: expert id out of range at token {token}, layer {layer} (the model has {experts} experts)"
    )]
    ExpertOutOfRange {
        /// Row of the bad id.
        token: usize,
        /// Layer of the bad id.
        layer: usize,
        /// Experts of the geometry.
        experts: usize,
    },
    /// Two sets of counts of different geometry.
    #[error("activation counts: geometry {got} does not match {expected}")]
    Geometry {
        /// Geometry of the argument.
        got: Geometry,
        /// Geometry that was expected.
        expected: Geometry,
    },
    /// A layer whose counts do not add up to tokens x top-k.
    #[error("activation counts: layer {layer} adds up to {got}, {expected} expected (tokens x top-k)")]
    NotConserved {
        /// The layer.
        layer: usize,
        /// Sum of its counts.
        got: u64,
        /// Tokens x top-k.
        expected: u64,
    },
    /// A count that no longer fits u32.
    #[error("activation counts: a count exceeds 2^32 - 1")]
    Overflow,
}

impl ActivationCounts {
    /// No tokens counted yet.
    pub fn zeros(geometry: &Geometry) -> Self {
        Self {
            geometry: *geometry,
            tokens: 0,
            cells: vec![0; geometry.cells()],
        }
    }

    /// Takes a ready [L, E] matrix in row-major order. Conservation is not checked: see [`Self::check_conservation`].
    pub fn from_cells(geometry: &Geometry, cells: Vec<u32>, tokens: u64) -> Result<Self, CountsError> {
        if cells.len() != geometry.cells() {
            return Err(CountsError::Length {
                got: cells.len(),
                expected: geometry.cells(),
            });
        }
        Ok(Self {
            geometry: *geometry,
            tokens,
            cells,
        })
    }

    /// Counts the chosen expert ids `rows` [n_tokens, L, k], row-major.
    pub fn from_rows<T: ExpertId>(geometry: &Geometry, rows: &[T], n_tokens: usize) -> Result<Self, CountsError> {
        let mut counts = Self::zeros(geometry);
        counts.add_rows(rows, n_tokens)?;
        Ok(counts)
    }

    /// Adds the chosen expert ids of `n_tokens` more tokens. On an error the counts are left partly added: drop them.
    pub fn add_rows<T: ExpertId>(&mut self, rows: &[T], n_tokens: usize) -> Result<(), CountsError> {
        self.check_length(rows.len(), n_tokens, self.geometry.layers)?;
        let (experts, top_k) = (self.geometry.experts, self.geometry.top_k);
        for (token, row) in rows.chunks_exact(self.geometry.ids_per_token()).enumerate() {
            let layers = row.chunks_exact(top_k).zip(self.cells.chunks_exact_mut(experts));
            for (layer, (ids, cells)) in layers.enumerate() {
                count(ids, cells).ok_or(CountsError::ExpertOutOfRange { token, layer, experts })?;
            }
        }
        self.tokens += n_tokens as u64;
        Ok(())
    }

    /// The same for rows [n_tokens, layers.total(), k], of which only the MoE layers are looked at.
    pub fn add_rows_of<T: ExpertId>(
        &mut self,
        layers: &MoeLayers,
        rows: &[T],
        n_tokens: usize,
    ) -> Result<(), CountsError> {
        if layers.moe.len() != self.geometry.layers {
            return Err(CountsError::Length {
                got: layers.moe.len(),
                expected: self.geometry.layers,
            });
        }
        self.check_length(rows.len(), n_tokens, layers.total)?;
        let (experts, top_k) = (self.geometry.experts, self.geometry.top_k);
        for (token, row) in rows.chunks_exact(layers.total * top_k).enumerate() {
            let cells = self.cells.chunks_exact_mut(experts);
            for (layer, (at, cells)) in layers.moe.iter().zip(cells).enumerate() {
                let ids = row.get(at * top_k..(at + 1) * top_k).unwrap_or(&[]);
                count(ids, cells).ok_or(CountsError::ExpertOutOfRange { token, layer, experts })?;
            }
        }
        self.tokens += n_tokens as u64;
        Ok(())
    }

    fn check_length(&self, got: usize, n_tokens: usize, layers: usize) -> Result<(), CountsError> {
        let expected = n_tokens.saturating_mul(layers).saturating_mul(self.geometry.top_k);
        if got != expected {
            return Err(CountsError::Length { got, expected });
        }
        if u32::try_from(self.tokens.saturating_add(n_tokens as u64)).is_err() {
            return Err(CountsError::Overflow);
        }
        Ok(())
    }

    /// Adds another request's or part's counts.
    pub fn merge(&mut self, other: &Self) -> Result<(), CountsError> {
        if other.geometry != self.geometry {
            return Err(CountsError::Geometry {
                got: other.geometry,
                expected: self.geometry,
            });
        }
        if self
            .cells
            .iter()
            .zip(&other.cells)
            .any(|(a, b)| a.checked_add(*b).is_none())
        {
            return Err(CountsError::Overflow);
        }
        for (cell, more) in self.cells.iter_mut().zip(&other.cells) {
            *cell += more;
        }
        self.tokens = self.tokens.saturating_add(other.tokens);
        Ok(())
    }

    /// Fails unless every layer's counts add up to tokens x top-k, as they do when no choice was lost or counted twice.
    pub fn check_conservation(&self) -> Result<(), CountsError> {
        let expected = self.tokens.saturating_mul(self.geometry.top_k as u64);
        for (layer, got) in self.chosen().enumerate() {
            if got != expected {
                return Err(CountsError::NotConserved { layer, got, expected });
            }
        }
        Ok(())
    }

    /// Choices counted in each layer, L of them.
    pub fn chosen(&self) -> impl Iterator<Item = u64> + '_ {
        let layers = self.cells.chunks_exact(self.geometry.experts);
        layers.map(|layer| layer.iter().map(|c| u64::from(*c)).sum())
    }

    /// Tokens counted.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Geometry of the counts.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// All counts, [L, E] row-major.
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// Counts of one layer; empty when the layer does not exist.
    pub fn layer(&self, layer: usize) -> &[u32] {
        let start = layer.saturating_mul(self.geometry.experts);
        self.cells
            .get(start..start.saturating_add(self.geometry.experts))
            .unwrap_or(&[])
    }
}

/// Counts one token's choices in one layer; `None` for an id outside the cells. At most top-k picks of one expert a token (an engine's
/// duplicates): saturates, never wraps.
fn count<T: ExpertId>(ids: &[T], cells: &mut [u32]) -> Option<()> {
    // A loop of known length is unrolled, and nearly all models choose eight, four or two experts.
    match ids.len() {
        8 => count_each(ids.first_chunk::<8>()?, cells),
        4 => count_each(ids.first_chunk::<4>()?, cells),
        2 => count_each(ids.first_chunk::<2>()?, cells),
        _ => count_each(ids, cells),
    }
}

#[inline]
fn count_each<'a, T: ExpertId + 'a>(ids: impl IntoIterator<Item = &'a T>, cells: &mut [u32]) -> Option<()> {
    for id in ids {
        let cell = cells.get_mut(id.index())?;
        *cell = cell.saturating_add(1);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Capture vector of the ELDR artifact: ids [2 layers][2 tokens][2], here token-major.
    #[test]
    fn counts_the_capture_vector() {
        let geometry = Geometry::new(2, 4, 2).unwrap();
        let rows: [u8; 8] = [0, 1, 2, 3, 1, 2, 0, 3];
        let counts = ActivationCounts::from_rows(&geometry, &rows, 2).unwrap();
        assert_eq!(counts.cells(), [1, 2, 1, 0, 1, 0, 1, 2]);
        assert_eq!(counts.tokens(), 2);
        counts.check_conservation().unwrap();
        let mut twice = counts.clone();
        twice.merge(&counts).unwrap();
        assert_eq!(twice.layer(1), [2, 0, 2, 4]);
        twice.check_conservation().unwrap();
    }

    #[test]
    fn refuses_wrong_lengths_ids_and_geometries() {
        let geometry = Geometry::new(1, 4, 2).unwrap();
        assert!(matches!(
            ActivationCounts::from_rows(&geometry, &[0u16, 1, 2], 2),
            Err(CountsError::Length { got: 3, expected: 4 })
        ));
        assert!(matches!(
            ActivationCounts::from_rows(&geometry, &[0i32, 1, -1, 2], 2),
            Err(CountsError::ExpertOutOfRange {
                token: 1,
                layer: 0,
                experts: 4
            })
        ));
        let mut one = ActivationCounts::zeros(&geometry);
        let other = ActivationCounts::zeros(&Geometry::new(2, 4, 2).unwrap());
        assert!(matches!(one.merge(&other), Err(CountsError::Geometry { .. })));
        let lost = ActivationCounts::from_cells(&geometry, vec![1, 0, 0, 0], 1).unwrap();
        assert!(matches!(
            lost.check_conservation(),
            Err(CountsError::NotConserved {
                layer: 0,
                got: 1,
                expected: 2
            })
        ));
    }

    #[test]
    fn dense_layers_are_left_out() {
        let geometry = Geometry::new(2, 4, 2).unwrap();
        // Three dense layers before the two MoE layers, with ids that no expert has.
        let rows = [200u8, 9, 9, 9, 9, 9, 0, 1, 2, 3, 9, 9, 9, 9, 9, 9, 1, 2, 0, 3];
        let mut counts = ActivationCounts::zeros(&geometry);
        counts
            .add_rows_of(&MoeLayers::after_dense(&geometry, 3), &rows, 2)
            .unwrap();
        assert_eq!(counts.cells(), [1, 2, 1, 0, 1, 0, 1, 2]);
        assert_eq!(counts.tokens(), 2);
        let between = MoeLayers::of(&geometry, 5, vec![3, 4]).unwrap();
        assert_eq!(between, MoeLayers::after_dense(&geometry, 3));
        assert!(matches!(
            counts.add_rows_of(&MoeLayers::of(&geometry, 5, vec![0, 4]).unwrap(), &rows, 2),
            Err(CountsError::ExpertOutOfRange { token: 0, layer: 0, .. })
        ));
        assert!(matches!(
            counts.add_rows_of(&MoeLayers::all(&geometry), &rows, 2),
            Err(CountsError::Length { got: 20, expected: 8 })
        ));
        for wrong in [vec![], vec![4, 3], vec![3, 3], vec![3, 5]] {
            assert_eq!(
                MoeLayers::of(&geometry, 5, wrong),
                Err(MoeLayersError::Order { total: 5 })
            );
        }
        assert_eq!(
            MoeLayers::of(&geometry, 5, vec![1, 2, 3]),
            Err(MoeLayersError::Number { got: 3, expected: 2 })
        );
    }
}
