//! A request's expected decode frequencies, in the fixed-point form that sums of batches are kept in.

use crate::counts::ActivationCounts;
use crate::geometry::Geometry;

/// Fixed-point 1.0 of a frequency.
pub(super) const ONE: i16 = 1 << 13;

/// The chance that one output token of a request uses expert e of layer l, [L, E] row-major: what a predictor answers. Kept in steps of
/// 1 / 8192, so that sums over a batch are exact whatever their order, on every machine.
#[derive(Clone, PartialEq, Eq)]
pub struct Frequencies {
    layers: usize,
    cells: Box<[i16]>,
}

/// Values that are no frequencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrequenciesError {
    /// The number of values does not fit the geometry.
    #[error("decode frequencies: {got} values where layers x experts = {expected} were expected")]
    Length {
        /// Values given.
        got: usize,
        /// Values that the geometry asks for.
        expected: usize,
    },
    /// Not a number from 0 to 1.
    #[error("decode frequencies: value {index} is not a number from 0 to 1")]
    Value {
        /// Its place.
        index: usize,
    },
    /// Counts over no tokens.
    #[error("decode frequencies: counts over no tokens")]
    NoTokens,
}

/// Regression may overshoot the ends by this; the value is then the end.
const SLACK: f32 = 0.05;

impl Frequencies {
    /// Takes values [L, E]. A learned map may overshoot 0 and 1 by a little; what is further off, or no number, is refused.
    pub fn new(geometry: &Geometry, values: &[f32]) -> Result<Self, FrequenciesError> {
        let expected = geometry.cells();
        if values.len() != expected {
            let got = values.len();
            return Err(FrequenciesError::Length { got, expected });
        }
        let mut cells = Vec::with_capacity(expected);
        for (index, value) in values.iter().enumerate() {
            if !(-SLACK..=1.0 + SLACK).contains(value) {
                return Err(FrequenciesError::Value { index });
            }
            cells.push((value.clamp(0.0, 1.0) * f32::from(ONE) + 0.5) as i16);
        }
        Ok(Self {
            layers: geometry.layers,
            cells: cells.into(),
        })
    }

    /// A request's own activation frequencies: counts per token.
    pub fn from_counts(counts: &ActivationCounts) -> Result<Self, FrequenciesError> {
        let tokens = counts.tokens();
        if tokens == 0 {
            return Err(FrequenciesError::NoTokens);
        }
        let one = ONE as u64;
        let cell = |c: &u32| ((u64::from(*c) * one + tokens / 2) / tokens).min(one) as i16;
        Ok(Self {
            layers: counts.geometry().layers,
            cells: counts.cells().iter().map(cell).collect(),
        })
    }

    /// Layers L.
    pub fn layers(&self) -> usize {
        self.layers
    }

    /// Frequencies in steps of 1 / 8192, [L, E].
    pub(super) fn cells(&self) -> &[i16] {
        &self.cells
    }

    /// The frequencies as numbers from 0 to 1, [L, E].
    pub fn values(&self) -> impl Iterator<Item = f32> + '_ {
        self.cells().iter().map(|c| f32::from(*c) / f32::from(ONE))
    }
}

impl std::fmt::Debug for Frequencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frequencies({} layers, {} cells)", self.layers, self.cells.len())
    }
}
