//! The router's core: choose a prefill worker, prefill, sign, choose a decode worker, decode. It knows no front door: a door gives it a
//! [`ClientRequest`] and relays the [`Answer`], or uses [`Core::prepare`] and lets somebody else carry the decode leg.

mod answer;
mod attempt;
mod bodies;
mod check;
mod choose;
mod decode;
mod failure;
mod fields;
mod prefill;
mod prefix;
mod prepare;
mod request;
mod sign;
pub(crate) mod sse;
pub(crate) mod upstream;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) use answer::{Answer, AnswerBody, Completion, completion_tokens};
pub(crate) use failure::{Failure, FailureKind, LegError};
pub(crate) use request::{ClientRequest, Endpoint, LocalReason, Wanted};
pub(crate) use sign::{Fallback, Signature};

use crate::{args::LimitArgs, clock::Clock, routing::RoutingState, stats::Statistics, telemetry::RouterMetrics};
use upstream::Upstream;

/// Everything a request needs.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) routing: Arc<RoutingState>,
    pub(crate) upstream: Upstream,
    pub(crate) metrics: Arc<RouterMetrics>,
    pub(crate) statistics: Statistics,
    pub(crate) limits: LimitArgs,
    pub(crate) clock: Clock,
    rng: Mutex<Xoshiro256PlusPlus>,
}

impl Core {
    pub(crate) fn new(
        metrics: Arc<RouterMetrics>,
        routing: Arc<RoutingState>,
        limits: LimitArgs,
        clock: Clock,
        seed: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            routing,
            upstream: Upstream::new(&limits),
            metrics,
            statistics: Statistics::new(seed ^ 0x5eed),
            limits,
            clock,
            rng: Mutex::new(Xoshiro256PlusPlus::seed_from_u64(seed)),
        })
    }

    /// A fresh request id.
    pub(crate) fn new_id(&self) -> String {
        self.upstream_id()
    }

    /// Chance, and with it the right to choose: choices happen one after the other, so that each sees the reservations of all before it.
    fn rng(&self) -> MutexGuard<'_, Xoshiro256PlusPlus> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
