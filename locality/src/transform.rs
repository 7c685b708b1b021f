//! Transforms: activation counts to signatures.
//!
//! Kept layers are flattened, each cell mapped (count, count x IDF, square root, or 0/1), and the whole vector divided by one global
//! L2 norm. A zero vector stays zero: all its similarities are 0, so every worker is in its band.

use serde::{Deserialize, Serialize};

use crate::counts::ActivationCounts;
use crate::geometry::Geometry;
use crate::vectors::{scale, weigh_counts};

/// Norms below this are taken for it, as in ELDR, so that nothing divides by zero.
pub(crate) const MIN_NORM: f32 = 1e-9;

/// How a count becomes a signature cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TransformKind {
    /// The count itself.
    Count,
    /// The count times the cell's inverse document frequency. The default.
    CountIdf,
    /// The square root of the count.
    Sqrt,
    /// 1 where the expert was used at all.
    Binary,
    /// Summed gate probabilities as they are, where an engine returns floats: takes values, not counts.
    GateProbability,
}

/// Layer mask, kind and IDF weights: what turns counts into signatures.
#[derive(Clone, Debug, PartialEq)]
pub struct Transform {
    kind: TransformKind,
    geometry: Geometry,
    kept_layers: Vec<u16>,
    idf: Vec<f32>,
}

/// Why a transform was refused or could not be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransformError {
    /// The layer mask is empty, unsorted, repeated or out of range.
    #[error("transform: kept layers must be sorted, distinct, at least one and below {layers}")]
    Layers {
        /// Layers of the model.
        layers: usize,
    },
    /// IDF weights that do not fit.
    #[error("transform: {0}")]
    Idf(&'static str),
    /// Counts of another model.
    #[error("transform: counts of geometry {got} given to a transform for {expected}")]
    Geometry {
        /// Geometry of the counts.
        got: Geometry,
        /// Geometry of the transform.
        expected: Geometry,
    },
    /// The output slice or the input has the wrong length.
    #[error("transform: {got} values given, {expected} expected")]
    Length {
        /// Length given.
        got: usize,
        /// Length expected.
        expected: usize,
    },
    /// Counts given to a transform of gate probabilities.
    #[error("transform: gate probabilities are needed, counts were given; use a table with another transform")]
    NotCounts,
    /// A value that is negative or not finite.
    #[error("transform: negative or non-finite input")]
    Value,
}

impl Transform {
    /// Checks and makes a transform. `idf` has kept layers x experts weights for [`TransformKind::CountIdf`], else it is empty.
    pub fn new(
        kind: TransformKind,
        geometry: &Geometry,
        kept_layers: Vec<u16>,
        idf: Vec<f32>,
    ) -> Result<Self, TransformError> {
        let sorted = kept_layers.windows(2).all(|w| w[0] < w[1]);
        let in_range = kept_layers
            .last()
            .is_some_and(|last| usize::from(*last) < geometry.layers);
        if !sorted || !in_range {
            return Err(TransformError::Layers {
                layers: geometry.layers,
            });
        }
        if kind == TransformKind::CountIdf {
            if idf.len() != kept_layers.len() * geometry.experts {
                return Err(TransformError::Idf("IDF needs kept layers x experts weights"));
            }
            if idf.iter().any(|w| !w.is_finite() || *w < 0.0) {
                return Err(TransformError::Idf("IDF weights must be finite and not negative"));
            }
            if idf.iter().all(|w| *w == 0.0) {
                return Err(TransformError::Idf("IDF weights are all zero"));
            }
        } else if !idf.is_empty() {
            return Err(TransformError::Idf("only CountIdf has IDF weights"));
        }
        Ok(Self {
            kind,
            geometry: *geometry,
            kept_layers,
            idf,
        })
    }

    /// A transform without IDF that keeps every layer.
    pub fn all_layers(kind: TransformKind, geometry: &Geometry) -> Result<Self, TransformError> {
        Self::new(kind, geometry, (0..geometry.layers as u16).collect(), Vec::new())
    }

    /// How cells are mapped.
    pub fn kind(&self) -> TransformKind {
        self.kind
    }

    /// Geometry of the counts it takes.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Kept layers, ascending.
    pub fn kept_layers(&self) -> &[u16] {
        &self.kept_layers
    }

    /// IDF weights of the kept layers, row-major; empty unless the kind is `CountIdf`.
    pub fn idf(&self) -> &[f32] {
        &self.idf
    }

    /// Length D of a signature: kept layers x experts.
    pub fn dim(&self) -> usize {
        self.kept_layers.len() * self.geometry.experts
    }

    /// Writes the signature of `counts` to `out` (length [`Self::dim`]) and returns the norm before division; 0 means a zero signature.
    pub fn signature(&self, counts: &ActivationCounts, out: &mut [f32]) -> Result<f32, TransformError> {
        if *counts.geometry() != self.geometry {
            return Err(TransformError::Geometry {
                got: *counts.geometry(),
                expected: self.geometry,
            });
        }
        self.check_output(out)?;
        if self.kind == TransformKind::GateProbability {
            return Err(TransformError::NotCounts);
        }
        let mut idf = self.idf.chunks_exact(self.geometry.experts);
        for (layer, row) in self.kept_layers.iter().zip(out.chunks_exact_mut(self.geometry.experts)) {
            let cells = counts.layer(usize::from(*layer));
            match self.kind {
                TransformKind::CountIdf => {
                    if let Some(weights) = idf.next() {
                        weigh_counts(cells, weights, row);
                    }
                }
                TransformKind::Count | TransformKind::GateProbability => {
                    row.iter_mut().zip(cells).for_each(|(o, c)| *o = *c as f32);
                }
                TransformKind::Sqrt => row.iter_mut().zip(cells).for_each(|(o, c)| *o = (*c as f32).sqrt()),
                TransformKind::Binary => row
                    .iter_mut()
                    .zip(cells)
                    .for_each(|(o, c)| *o = f32::from(u8::from(*c > 0))),
            }
        }
        Ok(normalise(out))
    }

    /// The same for real-valued activations [L, E], such as predicted frequencies or summed gate probabilities.
    pub fn signature_of_values(&self, values: &[f32], out: &mut [f32]) -> Result<f32, TransformError> {
        if values.len() != self.geometry.cells() {
            return Err(TransformError::Length {
                got: values.len(),
                expected: self.geometry.cells(),
            });
        }
        if values.iter().any(|v| !v.is_finite() || *v < 0.0) {
            return Err(TransformError::Value);
        }
        self.check_output(out)?;
        let experts = self.geometry.experts;
        for (layer, row) in self.kept_layers.iter().zip(out.chunks_exact_mut(experts)) {
            let start = usize::from(*layer) * experts;
            let cells = values.get(start..start + experts).unwrap_or(&[]);
            match self.kind {
                TransformKind::Count | TransformKind::CountIdf | TransformKind::GateProbability => {
                    row.copy_from_slice(cells);
                }
                TransformKind::Sqrt => row.iter_mut().zip(cells).for_each(|(o, c)| *o = c.sqrt()),
                TransformKind::Binary => row
                    .iter_mut()
                    .zip(cells)
                    .for_each(|(o, c)| *o = f32::from(u8::from(*c > 0.0))),
            }
        }
        if self.kind == TransformKind::CountIdf {
            out.iter_mut().zip(&self.idf).for_each(|(o, w)| *o *= w);
        }
        Ok(normalise(out))
    }

    fn check_output(&self, out: &[f32]) -> Result<(), TransformError> {
        if out.len() == self.dim() {
            Ok(())
        } else {
            Err(TransformError::Length {
                got: out.len(),
                expected: self.dim(),
            })
        }
    }
}

/// Divides by the L2 norm and returns the norm before; a zero vector stays zero.
pub fn normalise(vector: &mut [f32]) -> f32 {
    let norm = crate::score::dot(vector, vector).sqrt();
    scale(vector, 1.0 / norm.max(MIN_NORM));
    norm
}

/// Inverse document frequencies ln((N + 1) / (df + 1)) for all layers [L, E]: df = requests that used the expert at all.
///
/// An expert every request uses gets 0. `None` without requests or with counts of another geometry.
pub fn fit_idf<'a>(geometry: &Geometry, requests: impl IntoIterator<Item = &'a ActivationCounts>) -> Option<Vec<f32>> {
    let mut frequency = vec![0u32; geometry.cells()];
    let mut total = 0u32;
    for counts in requests {
        if counts.geometry() != geometry {
            return None;
        }
        total = total.checked_add(1)?;
        frequency
            .iter_mut()
            .zip(counts.cells())
            .for_each(|(f, c)| *f += u32::from(*c > 0));
    }
    (total > 0).then(|| frequency.iter().map(|df| idf_weight(total, *df)).collect())
}

/// ln((n + 1) / (df + 1)), natural logarithm.
pub fn idf_weight(n: u32, df: u32) -> f32 {
    ((f64::from(n) + 1.0) / (f64::from(df) + 1.0)).ln() as f32
}
