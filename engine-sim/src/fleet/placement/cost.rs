//! Distinct experts per rank of one decode step.

use super::Placement;
use crate::fleet::gates::Choices;

/// What tokens do with an expert that has copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// Spread over all copies in turn: n tokens read min(n, copies) of them, as EPLB's balance of tokens has it.
    Spread,
    /// All go to one copy: experts with fewest copies first, each to its rank with fewest activated experts so far, as METRO does.
    One,
}

/// Ranks' work in one step, summed over layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepRanks {
    /// Distinct physical experts of each layer's slowest rank: what the step waits for.
    pub slowest: u32,
    /// Distinct physical experts of all ranks.
    pub activated: u32,
    /// Distinct logical experts.
    pub distinct: u32,
}

/// Counts one step after the other without allocating.
#[derive(Clone, Debug)]
pub struct StepCost {
    copies: Copies,
    ranks: usize,
    experts: usize,
    layers: usize,
    /// Ranks that hold each expert, [L, E] -> range of `holders`.
    starts: Vec<u32>,
    holders: Vec<u16>,
    /// Experts of each layer by number of copies, fewest first, [L, E].
    order: Vec<u16>,
    /// Tokens of each expert in this step, [L, E].
    tokens: Vec<u32>,
    on_rank: Vec<u32>,
}

impl StepCost {
    /// Prepares counting for a placement.
    pub fn new(placement: &Placement, copies: Copies) -> Self {
        let geometry = placement.geometry();
        let (layers, experts, places) = (geometry.layers, geometry.experts, placement.per_rank().max(1));
        let (mut starts, mut holders, mut order) = (vec![0], Vec::new(), Vec::new());
        for row in placement.layers() {
            let mut held = vec![Vec::new(); experts];
            for (p, expert) in row.iter().enumerate() {
                held[usize::from(*expert)].push((p / places) as u16);
            }
            let mut by_copies: Vec<u16> = (0..experts as u16).collect();
            by_copies.sort_by_key(|e| (held[usize::from(*e)].len(), *e));
            order.extend(by_copies);
            for mut ranks in held {
                // Two copies on one rank are read once.
                ranks.dedup();
                holders.extend(ranks);
                starts.push(holders.len() as u32);
            }
        }
        Self {
            copies,
            ranks: placement.ranks(),
            experts,
            layers,
            starts,
            holders,
            order,
            tokens: vec![0; layers * experts],
            on_rank: vec![0; placement.ranks()],
        }
    }

    /// Adds one request's token to the step. The choices must be of the placement's model.
    pub fn add(&mut self, choices: &Choices, token: usize) {
        let experts = self.experts;
        let tokens = &mut self.tokens;
        choices.for_each(token, |layer, expert| {
            if let Some(n) = tokens.get_mut(layer * experts + expert) {
                *n += 1;
            }
        });
    }

    /// Counts the step and starts the next one.
    pub fn finish(&mut self) -> StepRanks {
        let mut sum = StepRanks::default();
        for layer in 0..self.layers {
            self.on_rank.fill(0);
            for at in layer * self.experts..(layer + 1) * self.experts {
                let cell = layer * self.experts + usize::from(self.order[at]);
                let tokens = std::mem::take(&mut self.tokens[cell]);
                if tokens == 0 {
                    continue;
                }
                sum.distinct += 1;
                let holders = &self.holders[self.starts[cell] as usize..self.starts[cell + 1] as usize];
                match self.copies {
                    Copies::Spread => {
                        for rank in holders.iter().take(tokens as usize) {
                            self.on_rank[usize::from(*rank)] += 1;
                        }
                    }
                    Copies::One => {
                        let least = holders.iter().min_by_key(|r| (self.on_rank[usize::from(**r)], **r));
                        if let Some(rank) = least {
                            self.on_rank[usize::from(*rank)] += 1;
                        }
                    }
                }
            }
            sum.slowest += self.on_rank.iter().copied().max().unwrap_or(0);
            sum.activated += self.on_rank.iter().sum::<u32>();
        }
        sum
    }

    /// Ranks of the placement.
    pub fn ranks(&self) -> usize {
        self.ranks
    }
}
