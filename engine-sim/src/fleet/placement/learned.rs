//! Placements learned from gates.

use super::{Copies, Placement, PlacementError, StepCost, activation_chances};
use crate::fleet::gates::Recording;

/// What a placement balances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Learned {
    /// Nothing: experts in their order.
    Linear,
    /// Tokens per rank, as EPLB; tokens of an expert are spread over its copies.
    Tokens,
    /// Activated experts per rank in a step of so many requests, as METRO; one copy is read.
    Activations {
        /// Requests in a usual step.
        batch: f64,
    },
}

impl Learned {
    /// Learns from the decode choices of `gates` and prepares counting. `redundant` copies in each layer; a linear placement takes none.
    pub fn step_cost(self, gates: &Recording, ranks: usize, redundant: usize) -> Result<StepCost, PlacementError> {
        let geometry = gates.geometry;
        let frequencies = || {
            let mut mean = vec![0.0f64; geometry.cells()];
            for request in &gates.requests {
                let own = request.decode_frequencies();
                mean.iter_mut().zip(own).for_each(|(m, f)| *m += f64::from(f));
            }
            for mean in &mut mean {
                *mean /= gates.len().max(1) as f64;
            }
            mean
        };
        Ok(match self {
            Self::Linear => StepCost::new(&Placement::linear(geometry, ranks, 0)?, Copies::One),
            Self::Tokens => {
                let placement = Placement::balanced(geometry, ranks, redundant, &frequencies())?;
                StepCost::new(&placement, Copies::Spread)
            }
            Self::Activations { batch } => {
                let chances = activation_chances(&frequencies(), batch);
                StepCost::new(&Placement::balanced(geometry, ranks, redundant, &chances)?, Copies::One)
            }
        })
    }
}
