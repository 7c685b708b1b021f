//! Placements as files for engines.

use coterie_locality::Geometry;
use serde::{Deserialize, Serialize};

use super::{Placement, PlacementError};

/// Largest file that is read.
const MAX_BYTES: usize = 64 << 20;

#[derive(Serialize, Deserialize)]
struct Document {
    physical_to_logical_map: Vec<Vec<u16>>,
}

impl Placement {
    /// The placement as SGLang's `--init-expert-location` takes it. `dense_layers` rows of experts in their order come first, for models whose
    /// first layers have no experts (3 for DeepSeek-V3).
    pub fn to_json(&self, dense_layers: usize) -> Result<String, PlacementError> {
        let linear = Self::linear(
            self.geometry,
            self.ranks,
            self.per_rank() * self.ranks - self.geometry.experts,
        )?;
        let dense = linear.layers.into_iter().cycle().take(dense_layers);
        let document = Document {
            physical_to_logical_map: dense.chain(self.layers.iter().cloned()).collect(),
        };
        serde_json::to_string(&document).map_err(|e| PlacementError(e.to_string()))
    }

    /// Reads such a file for a model whose first `dense_layers` layers have no experts.
    pub fn from_json(
        bytes: &[u8],
        geometry: Geometry,
        ranks: usize,
        dense_layers: usize,
    ) -> Result<Self, PlacementError> {
        let rows = rows(bytes)?.into_iter().skip(dense_layers);
        Self::new(geometry, ranks, rows.collect())
    }

    /// The same where the number of dense layers is not known: all rows before those of the `geometry`'s layers.
    pub fn from_json_of_model(bytes: &[u8], geometry: Geometry, ranks: usize) -> Result<Self, PlacementError> {
        let mut rows = rows(bytes)?;
        let dense = rows.len().saturating_sub(geometry.layers);
        Self::new(geometry, ranks, rows.split_off(dense))
    }
}

fn rows(bytes: &[u8]) -> Result<Vec<Vec<u16>>, PlacementError> {
    if bytes.len() > MAX_BYTES {
        return Err(PlacementError(format!("the file has more than {MAX_BYTES} bytes")));
    }
    let document: Document = serde_json::from_slice(bytes).map_err(|e| {
        PlacementError(format!(
            "{e}. It must be {{\"physical_to_logical_map\": [[...], ...]}} with a row per layer"
        ))
    })?;
    Ok(document.physical_to_logical_map)
}
