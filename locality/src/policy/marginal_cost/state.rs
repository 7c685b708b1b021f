//! What is kept of each worker, and the choice among them.

use std::collections::HashMap;

use rand::{Rng, RngCore};

use super::fixed::SURVIVAL_ONE;
use super::step_time::{StepLaw, StepTime};
use super::summary::UnionSummary;
use super::union::{LogUnion, added, frequency_sum, survivals};
use crate::policy::{Candidates, WorkerId};

/// Requests without known frequencies are taken for more of the known ones, up to this many for each.
const MOST_PER_KNOWN: f32 = 64.0;
/// Loads above are taken for this one.
const MOST_LOAD: f32 = 1e6;
/// Mean load from which similarity counts in full. With few requests a worker, those of a centroid hardly ever meet.
const FULL_AFFINITY: f64 = 8.0;
/// Similarity may at most halve or double what a request counts.
const AFFINITY_LIMITS: (f64, f64) = (0.5, 2.0);

#[derive(Debug)]
struct Slot {
    own: LogUnion,
    /// Own requests in the sum.
    requests: u32,
    others: Option<UnionSummary>,
    /// Load that was last reported with a step.
    load: f32,
    /// Chance that a cell is not used, [L, E].
    survivals: Box<[i16]>,
    /// Distinct experts expected, over all layers.
    distinct: f32,
}

#[derive(Debug)]
pub(super) struct State {
    cells: usize,
    slots: HashMap<WorkerId, Slot>,
    time: StepTime,
}

impl State {
    pub(super) fn new(cells: usize) -> Self {
        Self {
            cells,
            slots: HashMap::new(),
            time: StepTime::default(),
        }
    }

    pub(super) fn law(&self) -> Option<StepLaw> {
        self.time.learned()
    }

    /// The worker where the total rises least, equals by chance, and the distinct experts of its batch with the request.
    pub(super) fn cheapest(
        &self,
        frequencies: &[i16],
        affinity: f32,
        candidates: &Candidates<'_>,
        rng: &mut dyn RngCore,
    ) -> Option<(usize, f32)> {
        let alone = frequency_sum(frequencies);
        let law = self.time.law(alone, 1.0);
        let similarity = candidates.usable_similarity().unwrap_or(&[]);
        let mean = similarity.iter().map(|s| f64::from(*s)).sum::<f64>() / similarity.len().max(1) as f64;
        let loads = candidates.loads.iter().map(|l| sane(*l));
        let busy = loads.sum::<f64>() / candidates.loads.len().max(1) as f64 / FULL_AFFINITY;
        let affinity = f64::from(affinity) * busy.min(1.0);
        let mut best: Option<(f64, usize, f64)> = None;
        let mut equals = 0u32;
        for (index, load) in candidates.loads.iter().enumerate() {
            let load = sane(*load);
            let slot = self.slots.get(&candidates.worker(index));
            let (distinct, more) = self.expected(slot, frequencies, alone, load);
            let near = similarity.get(index).map_or(0.0, |s| f64::from(*s) - mean);
            let factor = (1.0 - affinity * near).clamp(AFFINITY_LIMITS.0, AFFINITY_LIMITS.1);
            let cost = law.marginal(distinct, more * factor, load);
            match best {
                Some((lowest, ..)) if cost > lowest => continue,
                // Reservoir sampling over the equals: each ends up chosen with the same probability.
                Some((lowest, ..)) if cost == lowest => {
                    equals += 1;
                    if rng.gen_range(0..=equals) != 0 {
                        continue;
                    }
                }
                _ => equals = 0,
            }
            best = Some((cost, index, distinct + more));
        }
        best.map(|(_, worker, distinct)| (worker, distinct as f32))
    }

    /// Distinct experts of a worker's batch, and how many more the request brings.
    fn expected(&self, slot: Option<&Slot>, frequencies: &[i16], alone: f64, load: f64) -> (f64, f64) {
        match slot {
            Some(slot) if load > 0.0 && slot.known() > 0 => {
                (f64::from(slot.distinct), added(frequencies, &slot.survivals))
            }
            // Nothing is known of what runs there: requests like this one, whose experts are drawn evenly.
            _ => {
                let cells = self.cells.max(1) as f64;
                let unused = (1.0 - (alone / cells).min(1.0)).powf(load);
                (cells * (1.0 - unused), alone * unused)
            }
        }
    }

    fn slot(&mut self, worker: WorkerId) -> &mut Slot {
        let cells = self.cells;
        self.slots.entry(worker).or_insert_with(|| Slot {
            own: LogUnion::new(cells),
            requests: 0,
            others: None,
            load: 0.0,
            survivals: vec![SURVIVAL_ONE; cells].into(),
            distinct: 0.0,
        })
    }

    pub(super) fn started(&mut self, worker: WorkerId, frequencies: &[i16]) {
        let slot = self.slot(worker);
        slot.own.add(frequencies);
        slot.requests += 1;
        slot.load += 1.0;
        slot.refresh();
    }

    pub(super) fn finished(&mut self, worker: WorkerId, frequencies: &[i16]) {
        // A worker that was forgotten in between has no requests any more.
        if let Some(slot) = self.slots.get_mut(&worker).filter(|s| s.requests > 0) {
            slot.own.remove(frequencies);
            slot.requests -= 1;
            slot.load = (slot.load - 1.0).max(0.0);
            slot.refresh();
        }
    }

    pub(super) fn observed(&mut self, worker: WorkerId, load: f32, seconds: f64) {
        if let Some(slot) = self.slots.get_mut(&worker)
            && load.is_finite()
        {
            slot.load = load.clamp(0.0, MOST_LOAD);
            if slot.known() > 0 {
                self.time.observe(f64::from(slot.distinct), f64::from(load), seconds);
            }
        }
    }

    pub(super) fn summary(&self, worker: WorkerId) -> Option<UnionSummary> {
        let slot = self.slots.get(&worker)?;
        Some(UnionSummary::of(slot.requests, slot.own.logs()))
    }

    pub(super) fn set_others(&mut self, worker: WorkerId, others: &UnionSummary) {
        let slot = self.slot(worker);
        slot.others = Some(others.clone());
        slot.refresh();
    }

    /// Sums and survivals of a worker, to the last bit.
    #[cfg(test)]
    pub(super) fn exact(&self, worker: WorkerId) -> Option<(&[u32], &[i16])> {
        let slot = self.slots.get(&worker)?;
        Some((slot.own.logs(), &slot.survivals))
    }

    pub(super) fn keep(&mut self, live: &[WorkerId]) {
        self.slots.retain(|id, _| live.contains(id));
    }
}

/// Loads come from reports; what is no number is a full worker.
fn sane(load: f32) -> f64 {
    if load.is_nan() {
        f64::from(MOST_LOAD)
    } else {
        f64::from(load.clamp(0.0, MOST_LOAD))
    }
}

impl Slot {
    /// Requests whose frequencies are known.
    fn known(&self) -> u32 {
        self.requests
            .saturating_add(self.others.as_ref().map_or(0, UnionSummary::requests))
    }

    /// Works out what the batch is expected to use, after it changed.
    fn refresh(&mut self) {
        let known = self.known().max(1) as f32;
        let scale = (self.load / known).clamp(1.0, MOST_PER_KNOWN);
        let (own, out) = (self.own.logs(), &mut self.survivals);
        self.distinct = match &self.others {
            None => survivals(own.iter().copied(), scale, out),
            Some(others) => {
                let both = own.iter().zip(others.logs()).map(|(a, b)| a.saturating_add(b));
                survivals(both, scale, out)
            }
        };
    }
}
