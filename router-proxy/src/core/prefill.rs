//! The prefill leg.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use coterie_locality::ActivationCounts;
use serde_json::value::RawValue;

use super::{
    Core,
    failure::LegError,
    request::ClientRequest,
    upstream::{self, Post},
};
use crate::{
    dialect::{HandOff, MissingSignature, PrefillAnswer},
    routing::Active,
    telemetry::RouterMetrics,
    worker::Reservation,
};

/// A finished prefill.
#[derive(Debug)]
pub(crate) struct Prefilled {
    pub(crate) handoff: Option<Ticket>,
    /// Only workers of this revision can take the hand-off.
    pub(crate) revision: String,
    pub(crate) counts: Result<ActivationCounts, MissingSignature>,
    pub(crate) prompt_tokens: u64,
}

/// A hand-off object, to be used once.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) field: &'static str,
    pub(crate) object: Box<RawValue>,
    since: Instant,
    seen: bool,
    refused: bool,
    metrics: Arc<RouterMetrics>,
}

impl Ticket {
    /// A decode worker may have seen the object: the prefill worker may have freed the blocks, so it must not be used again.
    pub(crate) fn seen(&mut self) {
        self.seen = true;
    }

    /// The decode worker refused the request, so it pulled nothing.
    pub(crate) fn refused(&mut self) {
        self.refused = true;
    }

    /// Whether another decode worker may still be given the object.
    pub(crate) fn reusable(&self, dialect: &dyn HandOff) -> bool {
        !self.seen && self.since.elapsed() < dialect.usable_for()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Blocks of a ticket that nobody used stay pinned on the prefill worker until their lease ends.
        self.metrics.handoff(if self.seen && !self.refused {
            "used"
        } else {
            "abandoned"
        });
    }
}

impl Core {
    /// Prefills on the reserved worker. The reservation ends with the leg, before decode begins.
    pub(super) async fn prefill(
        &self,
        request: &ClientRequest,
        active: &Active,
        dialect: &dyn HandOff,
        reservation: Reservation,
        request_id: &str,
    ) -> Result<Prefilled, LegError> {
        let worker = Arc::clone(reservation.worker());
        let leg = self
            .prefill_leg(request, active, dialect, reservation, request_id)
            .await;
        self.judge(&worker, &leg);
        leg
    }

    async fn prefill_leg(
        &self,
        request: &ClientRequest,
        active: &Active,
        dialect: &dyn HandOff,
        mut reservation: Reservation,
        request_id: &str,
    ) -> Result<Prefilled, LegError> {
        let started = Instant::now();
        reservation.dispatch();
        let worker = reservation.worker();
        let post = Post {
            address: &worker.address,
            path: request.endpoint.path(),
            headers: &request.headers,
            request_id,
            body: request.prefill_body(dialect.field(), dialect.prefill_value()),
            within: self.limits.prefill_timeout,
        };
        let (head, body) = self.upstream.post(post).await?.into_parts();
        let limit = self.limits.max_answer_bytes;
        let body = upstream::read(&worker.address, body, limit, self.limits.idle_timeout).await?;
        if !head.status.is_success() {
            return Err(LegError::Status {
                worker: worker.name.clone(),
                head: Box::new(head),
                body,
            });
        }
        self.metrics.prefilled(started.elapsed());
        self.read_answer(&body, active, dialect, &reservation)
    }

    fn read_answer(
        &self,
        body: &Bytes,
        active: &Active,
        dialect: &dyn HandOff,
        reservation: &Reservation,
    ) -> Result<Prefilled, LegError> {
        let worker = reservation.worker();
        let answer = PrefillAnswer::parse(body).map_err(|e| upstream::broken(&worker.name, &e))?;
        let decision = Instant::now();
        let counts = active.activations.prompt_counts(&answer, &active.fingerprint.geometry);
        self.metrics.counted(decision.elapsed());
        if let Err(reason) = counts
            && reason != MissingSignature::Missing
        {
            tracing::debug!(worker = worker.name, reason = reason.as_str(), "no signature");
        }
        let handoff = dialect.extract(&answer).map(|object| Ticket {
            field: dialect.field(),
            object,
            since: Instant::now(),
            seen: false,
            refused: false,
            metrics: Arc::clone(&self.metrics),
        });
        Ok(Prefilled {
            handoff,
            revision: worker.revision.clone(),
            counts,
            prompt_tokens: answer.prompt_tokens().unwrap_or(0),
        })
    }
}
