//! Choosing workers. A choice and its reservation are one step.

use std::sync::Arc;

use coterie_crds::routing::{PolicyKind, PrefillPolicyKind};
use coterie_locality::{
    Candidates, Decision,
    policy::{Reason, WorkerId},
};
use rand::Rng;

use super::{Core, failure::LegError, sign::Signature};
use crate::{
    routing::{Active, View},
    worker::{Reservation, Worker},
};

/// Workers that already failed a request.
#[derive(Debug, Default)]
pub(crate) struct Failed {
    /// Not to be asked again.
    never: Vec<Arc<Worker>>,
    /// To be asked again only where there is no other.
    last: Vec<Arc<Worker>>,
}

impl Failed {
    pub(crate) fn add(&mut self, worker: &Arc<Worker>, error: &LegError) {
        let list = if error.may_repeat() {
            &mut self.last
        } else {
            &mut self.never
        };
        list.push(Arc::clone(worker));
    }

    fn refuses(&self, worker: &Arc<Worker>) -> bool {
        self.never.iter().any(|w| Arc::ptr_eq(w, worker))
    }

    fn defers(&self, worker: &Arc<Worker>) -> bool {
        self.last.iter().any(|w| Arc::ptr_eq(w, worker))
    }
}

/// A decode worker, reserved.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) reservation: Reservation,
    pub(crate) decision: Decision,
}

impl Core {
    /// Chooses and reserves a prefill worker; `None` when every one failed this request or none is available.
    pub(super) fn choose_prefill(
        &self,
        view: &View,
        active: &Active,
        key: Option<u64>,
        failed: &Failed,
    ) -> Option<Reservation> {
        let now = self.clock.monotonic_ms();
        let mut rng = self.rng();
        let usable = |w: &Arc<Worker>| w.available(now) && !failed.refuses(w) && !failed.defers(w);
        if active.document.prefill.policy == PrefillPolicyKind::PrefixHash
            && let (Some(ring), Some(key)) = (&view.ring, key)
        {
            let loads: Vec<f32> = view.prefill.iter().map(|w| w.load(now)).collect();
            let choice = ring.choose(Some(key), &loads)?;
            if let Some(worker) = view.prefill.get(choice.worker).filter(|w| usable(w)) {
                self.metrics
                    .prefill_chosen(if choice.spilled { "spilled" } else { "owner" });
                return Some(reserve(worker, now));
            }
        }
        let worker = least_loaded(&view.prefill, now, &mut *rng, usable).or_else(|| {
            let anything = |w: &Arc<Worker>| w.available(now) && !failed.refuses(w);
            least_loaded(&view.prefill, now, &mut *rng, anything)
        })?;
        self.metrics.prefill_chosen("least_loaded");
        Some(reserve(worker, now))
    }

    /// Chooses and reserves a decode worker, of one revision if a hand-off asks for it.
    pub(super) fn choose_decode(
        &self,
        view: &View,
        active: &Active,
        revision: Option<&str>,
        signature: &mut Signature,
        failed: &Failed,
    ) -> Option<Choice> {
        let now = self.clock.monotonic_ms();
        let mut rng = self.rng();
        let of_revision = || {
            view.decode
                .iter()
                .filter(|t| revision.is_none_or(|r| t.worker.revision == r) && !failed.refuses(&t.worker))
        };
        let mut targets: Vec<_> = of_revision()
            .filter(|t| t.worker.available(now) && !failed.defers(&t.worker))
            .collect();
        if targets.is_empty() {
            // Better a worker that may answer than none at all.
            targets = of_revision().collect();
        }
        let loads: Vec<f32> = targets.iter().map(|t| t.worker.load(now)).collect();
        let frequencies = signature.take_frequencies();
        let source = signature.source();
        let similarity: Option<Vec<f32>> = signature.signed().map(|signed| {
            let of = |clusters: &[u32]| {
                let scores = clusters.iter().filter_map(|c| signed.scores.get(*c as usize));
                scores.fold(-1.0, |best: f32, s| best.max(*s))
            };
            let source = source.unwrap_or_default();
            targets.iter().map(|t| of(t.clusters(source))).collect()
        });
        let workers: Vec<WorkerId> = targets.iter().map(|t| t.worker.id).collect();
        let candidates = Candidates {
            workers: &workers,
            frequencies: frequencies.as_ref(),
            now: self.clock.seconds(),
            loads: &loads,
            similarity: similarity.as_deref(),
            ..Candidates::default()
        };
        let mut decision = active.policy(source).choose(&candidates, &mut *rng)?;
        let by_table = active.document.policy == PolicyKind::LocalityBand;
        if decision.reason == Reason::NoSignature && by_table && active.table.is_none() {
            decision.reason = Reason::NoTable;
        }
        let worker = &targets.get(decision.worker)?.worker;
        let mut reservation = reserve(worker, now);
        reservation.place(Arc::clone(active.policy(source)), frequencies, self.clock);
        Some(Choice { reservation, decision })
    }

    /// An id for one attempt, the same on both legs.
    pub(super) fn upstream_id(&self) -> String {
        format!("{:032x}", self.rng().r#gen::<u128>())
    }
}

fn reserve(worker: &Arc<Worker>, now: u64) -> Reservation {
    worker.given(now);
    Reservation::new(Arc::clone(worker))
}

fn least_loaded<'a>(
    workers: &'a [Arc<Worker>],
    now: u64,
    rng: &mut impl Rng,
    usable: impl Fn(&Arc<Worker>) -> bool,
) -> Option<&'a Arc<Worker>> {
    let usable: Vec<&Arc<Worker>> = workers.iter().filter(|w| usable(w)).collect();
    let lowest = usable.iter().map(|w| w.load(now)).min_by(f32::total_cmp)?;
    let equals: Vec<&Arc<Worker>> = usable.into_iter().filter(|w| w.load(now) <= lowest).collect();
    // A load may rise between the two looks at it; then any of them will do.
    let index = rng.gen_range(0..equals.len().max(1));
    equals.get(index).copied()
}
