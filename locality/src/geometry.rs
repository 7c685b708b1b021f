//! Shape of a model's experts: MoE layers, experts a layer, experts a token.

use serde::{Deserialize, Serialize};

/// Most MoE layers that any part accepts.
pub const MAX_LAYERS: usize = 256;
/// Most experts of one layer that any part accepts.
pub const MAX_EXPERTS: usize = 1024;
/// Most experts chosen per token and layer that any part accepts.
pub const MAX_TOP_K: usize = 64;

/// MoE layers (dense layers not counted), experts in each, and experts chosen per token and layer.
///
/// Made by [`Geometry::new`] or by deserialising, both of which check the bounds; so sizes computed from it cannot overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Unchecked", rename_all = "camelCase")]
#[non_exhaustive]
pub struct Geometry {
    /// MoE layers, 1..=256.
    pub layers: usize,
    /// Experts of each layer, 1..=1024.
    pub experts: usize,
    /// Experts chosen per token and layer, 1..=64 and at most `experts`.
    pub top_k: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Unchecked {
    layers: usize,
    experts: usize,
    top_k: usize,
}

impl TryFrom<Unchecked> for Geometry {
    type Error = GeometryError;

    fn try_from(raw: Unchecked) -> Result<Self, GeometryError> {
        Self::new(raw.layers, raw.experts, raw.top_k)
    }
}

/// A geometry outside the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("model geometry: {field} is {value}, must be 1 to {max}")]
pub struct GeometryError {
    field: &'static str,
    value: usize,
    max: usize,
}

impl Geometry {
    /// Checks the bounds and makes a geometry.
    pub fn new(layers: usize, experts: usize, top_k: usize) -> Result<Self, GeometryError> {
        let check = |field, value: usize, max| {
            if (1..=max).contains(&value) {
                Ok(())
            } else {
                Err(GeometryError { field, value, max })
            }
        };
        check("layers", layers, MAX_LAYERS)?;
        check("experts", experts, MAX_EXPERTS)?;
        check("topK", top_k, MAX_TOP_K.min(experts))?;
        Ok(Self { layers, experts, top_k })
    }

    /// Cells of an [L, E] matrix.
    pub fn cells(&self) -> usize {
        self.layers * self.experts
    }

    /// Expert ids that one token leaves: layers x top-k.
    pub fn ids_per_token(&self) -> usize {
        self.layers * self.top_k
    }
}

impl std::fmt::Display for Geometry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{} top-{}", self.layers, self.experts, self.top_k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_enforced_also_when_deserialised() {
        assert!(Geometry::new(48, 128, 8).is_ok());
        assert_eq!(
            Geometry::new(0, 128, 8).unwrap_err().to_string(),
            "model geometry: layers is 0, must be 1 to 256"
        );
        assert!(
            Geometry::new(1, 4, 5)
                .unwrap_err()
                .to_string()
                .contains("topK is 5, must be 1 to 4")
        );
        assert!(serde_json::from_str::<Geometry>(r#"{"layers":1,"experts":4096,"topK":1}"#).is_err());
        let ok: Geometry = serde_json::from_str(r#"{"layers":6,"experts":64,"topK":4}"#).unwrap();
        assert_eq!(ok.cells(), 384);
    }
}
