//! Everything before the decode leg: prefill where the fleet and the request allow it, signature, choice. Doors that do not carry the
//! stream themselves stop here.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use coterie_locality::Source;

use super::{
    Core,
    choose::{Choice, Failed},
    failure::{Failure, LegError},
    prefill::{Prefilled, Ticket},
    request::{ClientRequest, LocalReason},
    sign::{self, Signature},
};
use crate::{
    routing::{Active, View},
    stats::Outcome,
    worker::{Reservation, Worker},
};

/// What a request has been through so far.
#[derive(Debug)]
pub(crate) struct Tries {
    started: Instant,
    made: u32,
    prefill: Failed,
    pub(super) decode: Failed,
    /// A hand-off that no decode worker saw.
    pub(super) kept: Option<Prefilled>,
    last: Option<LegError>,
    counted: bool,
    /// Prefill was given up: the decode worker does it all.
    decode_only: bool,
}

impl Tries {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            made: 0,
            prefill: Failed::default(),
            decode: Failed::default(),
            kept: None,
            last: None,
            counted: false,
            decode_only: false,
        }
    }

    /// Begins another try, or says why there is none left.
    pub(super) fn begin(&mut self, most: u32, within: Duration) -> Result<(), Failure> {
        let first = self.made == 0;
        if !first && (self.made >= most || self.started.elapsed() >= within) {
            return Err(self.give_up());
        }
        self.made += 1;
        Ok(())
    }

    /// Whether [`Self::begin`] would allow one more.
    pub(super) fn another(&self, most: u32, within: Duration) -> bool {
        self.made < most && self.started.elapsed() < within
    }

    pub(super) fn failed(&mut self, error: LegError) {
        self.last = Some(error);
    }

    fn give_up(&mut self) -> Failure {
        match self.last.take() {
            Some(error) => error.into(),
            None => Failure::unavailable("no worker can take the request"),
        }
    }
}

/// Everything the decode leg needs.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) reservation: Reservation,
    pub(crate) body: Bytes,
    pub(crate) request_id: String,
    pub(crate) prefilled: Option<Prefilled>,
    /// Nearest cluster, and the source that it is of.
    pub(crate) cluster: Option<(Source, u32)>,
    pub(crate) active: Arc<Active>,
}

/// Why a try ended before decode.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// Try again, if a try is left.
    Retry,
    Failed(Failure),
}

impl Core {
    /// One try up to the decode leg.
    pub(crate) async fn prepare(&self, request: &ClientRequest, tries: &mut Tries) -> Result<Prepared, Stopped> {
        let view = self.routing.view();
        let Some(active) = view.active.clone() else {
            return Err(Stopped::Failed(Failure::unavailable(
                "the router has no routing document yet",
            )));
        };
        let request_id = self.upstream_id();
        let prefilled = match self.local(&view, &active, request) {
            Err(reason) => {
                if let Some(reason) = reason {
                    self.metrics.local(reason);
                }
                None
            }
            Ok(()) if tries.decode_only => None,
            Ok(()) => self.prefilled(&view, &active, request, &request_id, tries).await?,
        };
        // Workers may have come or gone while the prefill ran.
        let view = self.routing.view();
        self.choose(&view, &active, request, request_id, prefilled, tries)
    }

    /// Whether the request is prefilled by a prefill worker: `Ok` if it is, else why not (`Err(None)` in a fleet without such workers).
    fn local(&self, view: &View, active: &Active, request: &ClientRequest) -> Result<(), Option<LocalReason>> {
        if !active.document.disaggregated {
            return Err(None);
        }
        if let Some(reason) = request.local {
            return Err(Some(reason));
        }
        if active.handoff.is_none() {
            return Err(Some(LocalReason::NoConnector));
        }
        let now = self.clock.monotonic_ms();
        if !view.prefill.iter().any(|w| w.available(now)) {
            return Err(Some(LocalReason::NoPrefillWorker));
        }
        Ok(())
    }

    /// The kept hand-off if it may be used, else a fresh prefill; `None` when the prefill workers fail, and decode shall go on alone.
    async fn prefilled(
        &self,
        view: &View,
        active: &Active,
        request: &ClientRequest,
        request_id: &str,
        tries: &mut Tries,
    ) -> Result<Option<Prefilled>, Stopped> {
        let Some(dialect) = active.handoff.as_deref() else {
            return Err(Stopped::Retry);
        };
        let usable = |p: &Prefilled| p.handoff.as_ref().is_some_and(|h| h.reusable(dialect));
        if let Some(kept) = tries.kept.take().filter(usable) {
            return Ok(Some(kept));
        }
        let Some(reservation) = self.choose_prefill(view, active, request.prefix_key, &tries.prefill) else {
            return match &tries.last {
                None => Ok(self.decode_alone(LocalReason::NoPrefillWorker, tries)),
                Some(error) if error.busy() => Err(Stopped::Failed(tries.give_up())),
                Some(_) => Ok(self.decode_alone(LocalReason::PrefillFailed, tries)),
            };
        };
        let worker = Arc::clone(reservation.worker());
        match self.prefill(request, active, dialect, reservation, request_id).await {
            Ok(prefilled) => {
                if prefilled.handoff.is_none() {
                    self.metrics.local(LocalReason::HandOffMissing);
                }
                Ok(Some(prefilled))
            }
            Err(error) if error.retryable() => {
                self.metrics.retried("prefill", &error);
                tracing::info!(worker = worker.name, %error, "prefill failed");
                tries.prefill.add(&worker, &error);
                let busy = error.busy();
                tries.failed(error);
                if busy || tries.another(self.limits.max_attempts, self.limits.retry_deadline) {
                    return Err(Stopped::Retry);
                }
                Ok(self.decode_alone(LocalReason::PrefillFailed, tries))
            }
            Err(error) => Err(Stopped::Failed(error.into())),
        }
    }

    /// Gives prefill up for this request.
    fn decode_alone(&self, reason: LocalReason, tries: &mut Tries) -> Option<Prefilled> {
        self.metrics.local(reason);
        tries.decode_only = true;
        None
    }

    fn choose(
        &self,
        view: &View,
        active: &Arc<Active>,
        request: &ClientRequest,
        request_id: String,
        prefilled: Option<Prefilled>,
        tries: &mut Tries,
    ) -> Result<Prepared, Stopped> {
        let deciding = Instant::now();
        let mut signature = sign::sign(active, request, prefilled.as_ref().map(|p| &p.counts));
        let ticket = prefilled.as_ref().and_then(|p| Some((p, p.handoff.as_ref()?)));
        let revision = ticket.map(|(p, _)| p.revision.as_str());
        let choice = self.choose_decode(view, active, revision, &mut signature, &tries.decode);
        let Some(Choice { reservation, decision }) = choice else {
            return Err(Stopped::Failed(tries.give_up()));
        };
        self.metrics.decided(&decision, deciding.elapsed());
        let asked = !matches!(signature, Signature::NotAsked);
        if asked && !std::mem::replace(&mut tries.counted, true) {
            self.count(active, &signature);
        }
        let body = request.decode_body(ticket.map(|(_, t): (_, &Ticket)| (t.field, &*t.object)));
        tracing::debug!(
            request = request_id,
            worker = reservation.worker().name,
            reason = decision.reason.as_str(),
            source = signature.source().map(tracing::field::debug),
            band = decision.band,
            similarity = decision.chosen_similarity,
            distinct_experts = decision.distinct_experts,
            "decode worker chosen"
        );
        Ok(Prepared {
            reservation,
            body,
            request_id,
            cluster: cluster(&signature),
            prefilled,
            active: Arc::clone(active),
        })
    }

    /// Statistics of one request, once however often it is tried.
    fn count(&self, active: &Active, signature: &Signature) {
        self.metrics.signature(signature);
        let (source, outcome) = match signature {
            Signature::NotAsked => return,
            Signature::Made { source, signed, .. } => (*source, Outcome::Signed(signed.as_ref().map(|s| s.nearest))),
            Signature::Missing { source, reason } => (*source, Outcome::Missing(*reason)),
        };
        self.statistics.count(active, source, outcome);
    }

    /// Keeps track of whether a worker can be reached and does its work.
    pub(super) fn judge<T>(&self, worker: &Worker, leg: &Result<T, LegError>) {
        let now = self.clock.monotonic_ms();
        match leg {
            Err(LegError::Connect { .. }) => worker.unreachable(now),
            // To be busy is no failure, and no proof of health.
            Err(error) if error.busy() => {}
            Err(error) if error.retryable() => worker.failed(now),
            Ok(_) | Err(_) => worker.answered(),
        }
    }
}

fn cluster(signature: &Signature) -> Option<(Source, u32)> {
    let number = u32::try_from(signature.signed()?.nearest.cluster).ok()?;
    Some((signature.source()?, number))
}
