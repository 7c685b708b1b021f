//! Lowest load and equal loads.

use rand::{Rng, RngCore};
use serde::{Deserialize, Serialize};

/// What to do when several workers have the same lowest load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ties {
    /// One of them by chance, each equally likely: idle workers share the traffic.
    #[default]
    Spread,
    /// The lowest index, as ELDR does.
    LowestIndex,
}

/// The least-loaded of `members`, and how many members there were; `None` without members. One pass, no allocation.
pub(super) fn least_loaded(
    loads: &[f32],
    members: impl Iterator<Item = usize>,
    ties: Ties,
    rng: &mut dyn RngCore,
) -> Option<(usize, usize)> {
    let mut best: Option<(usize, f32)> = None;
    let (mut size, mut equal) = (0usize, 0u32);
    for worker in members {
        let Some(load) = loads.get(worker).copied() else {
            continue;
        };
        size += 1;
        match best {
            Some((_, lowest)) if load > lowest => {}
            // Reservoir sampling over the equals: each ends up chosen with the same probability.
            Some((_, lowest)) if load == lowest => {
                equal += 1;
                if ties == Ties::Spread && rng.gen_range(0..=equal) == 0 {
                    best = Some((worker, load));
                }
            }
            _ => {
                best = Some((worker, load));
                equal = 0;
            }
        }
    }
    best.map(|(worker, _)| (worker, size))
}
