//! Expert placements: which rank of a worker holds which expert, with copies of some.
//!
//! With expert parallelism a layer waits for its slowest rank, and a rank's time in decode is the number of distinct experts that it has to
//! read. Three ways to place, each a pure function of statistics:
//!
//! - [`Placement::linear`]: experts in their order, what engines do at start.
//! - [`Placement::balanced`] by tokens: copies for the experts with most tokens, and equal tokens per rank, as EPLB does.
//! - [`Placement::balanced`] by chances of activation: copies and ranks such that each rank expects equally many *activated* experts in a step. Tokens and activations differ: an expert with a thousand tokens in a step is read once.
//!
//! In a step, tokens of an expert with copies are spread over them (EPLB: every copy is read), or all go to one copy, chosen greedily so that the
//! slowest rank has few activated experts (METRO): [`Copies`]. [`StepCost`] counts either.
//!
//! Files have the form that SGLang's `--init-expert-location` takes: `{"physical_to_logical_map": [[...], ...]}`, one row per layer of the
//! model, dense layers included; physical expert `p` lies on rank `p / (physical experts / ranks)`.

mod balance;
mod cost;
mod file;
mod learned;
#[cfg(test)]
mod tests;

use coterie_locality::Geometry;

pub use cost::{Copies, StepCost, StepRanks};
pub use learned::Learned;

/// Most ranks of a worker.
pub const MAX_RANKS: usize = 1024;

/// Physical experts of each layer, in equal numbers on each rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    geometry: Geometry,
    ranks: usize,
    /// Logical expert of each physical one, \[L, P\].
    layers: Vec<Vec<u16>>,
}

/// A placement that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expert placement: {0}")]
pub struct PlacementError(pub(super) String);

impl Placement {
    /// Checks a map \[L, P\] of physical to logical experts: as many on each rank, each logical expert somewhere.
    pub fn new(geometry: Geometry, ranks: usize, layers: Vec<Vec<u16>>) -> Result<Self, PlacementError> {
        let fails = |what: String| Err(PlacementError(what));
        let physical = layers.first().map_or(0, Vec::len);
        if layers.len() != geometry.layers {
            return fails(format!(
                "{} layers where the model has {}",
                layers.len(),
                geometry.layers
            ));
        }
        slots(&geometry, ranks, physical.saturating_sub(geometry.experts))?;
        for (layer, row) in layers.iter().enumerate() {
            if row.len() != physical {
                return fails(format!(
                    "layer {layer} has {} physical experts, layer 0 has {physical}",
                    row.len()
                ));
            }
            let mut copies = vec![0u32; geometry.experts];
            for expert in row {
                match copies.get_mut(usize::from(*expert)) {
                    Some(n) => *n += 1,
                    None => return fails(format!("layer {layer} names expert {expert} of {}", geometry.experts)),
                }
            }
            if let Some(expert) = copies.iter().position(|n| *n == 0) {
                return fails(format!("layer {layer} has no copy of expert {expert}"));
            }
        }
        Ok(Self {
            geometry,
            ranks,
            layers,
        })
    }

    /// Experts in their order; `redundant` more are copies of the first ones.
    pub fn linear(geometry: Geometry, ranks: usize, redundant: usize) -> Result<Self, PlacementError> {
        slots(&geometry, ranks, redundant)?;
        let row: Vec<u16> = (0..geometry.experts + redundant)
            .map(|p| (p % geometry.experts) as u16)
            .collect();
        Ok(Self {
            geometry,
            ranks,
            layers: vec![row; geometry.layers],
        })
    }

    /// Equal load per rank, by `load` [L, E]. Tokens (any unit) give a token-balanced placement; the chance, 0..1, that an expert is used in a
    /// step of the worker's usual batch ([`activation_chances`] has it from frequencies) one balanced by activated experts. Copies share an
    /// expert's load: its tokens are spread over them, or one of them is read in a step, each as often. A layer where the greedy choice is
    /// worse than the linear one keeps the linear one.
    pub fn balanced(geometry: Geometry, ranks: usize, redundant: usize, load: &[f64]) -> Result<Self, PlacementError> {
        let linear = Self::linear(geometry, ranks, redundant)?;
        if load.len() != geometry.cells() || load.iter().any(|l| !(0.0..=1e300).contains(l)) {
            return Err(PlacementError(format!(
                "it needs {} loads (layers x experts), none negative",
                geometry.cells()
            )));
        }
        let layers = load
            .chunks_exact(geometry.experts)
            .zip(&linear.layers)
            .map(|(load, linear)| {
                let greedy = balance::place(load, ranks, redundant);
                let worst = |row: &[u16]| balance::heaviest_rank(row, load, ranks);
                if worst(&greedy) <= worst(linear) {
                    greedy
                } else {
                    linear.clone()
                }
            })
            .collect();
        Ok(Self {
            geometry,
            ranks,
            layers,
        })
    }

    /// Shape of the model.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Ranks of the worker.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Physical experts of each layer on each rank.
    pub fn per_rank(&self) -> usize {
        self.layers.first().map_or(0, Vec::len) / self.ranks
    }

    /// Logical expert of each physical one, \[L, P\].
    pub fn layers(&self) -> &[Vec<u16>] {
        &self.layers
    }

    /// Load of the heaviest rank of a layer under `load` \[E\], copies sharing an expert's load.
    pub fn heaviest_rank(&self, layer: usize, load: &[f64]) -> f64 {
        let row = self.layers.get(layer).map_or(&[][..], Vec::as_slice);
        balance::heaviest_rank(row, load, self.ranks)
    }
}

/// Chances that an expert is used in a step of `batch` requests, from decode frequencies per token [L, E]: 1 - (1 - f)^batch.
pub fn activation_chances(frequencies: &[f64], batch: f64) -> Vec<f64> {
    let chance = |f: &f64| 1.0 - (1.0 - f.clamp(0.0, 1.0)).powf(batch.max(0.0));
    frequencies.iter().map(chance).collect()
}

/// Physical experts on each rank.
fn slots(geometry: &Geometry, ranks: usize, redundant: usize) -> Result<usize, PlacementError> {
    let physical = geometry.experts + redundant;
    if !(1..=MAX_RANKS).contains(&ranks) || redundant > geometry.experts * ranks || !physical.is_multiple_of(ranks) {
        return Err(PlacementError(format!(
            "{physical} physical experts ({} and {redundant} redundant) cannot be shared equally by {ranks} ranks: change the number of redundant experts",
            geometry.experts
        )));
    }
    Ok(physical / ranks)
}
