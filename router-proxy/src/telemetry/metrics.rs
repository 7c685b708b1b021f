//! Metrics that requests move.

use std::time::Duration;

use coterie_locality::{Decision, Source, policy::Reason};
use coterie_service::metrics::Metrics;
use prometheus_client::metrics::{
    counter::Counter,
    family::Family,
    gauge::Gauge,
    histogram::{Histogram, exponential_buckets},
};

use super::{
    catalog::{Catalog, Described, PREFIX},
    outcome::ClientOutcome,
};
use crate::{
    core::{Endpoint, Fallback, LegError, LocalReason, Signature},
    dialect::MissingSignature,
};

type Labels = Vec<(&'static str, &'static str)>;
type Counters = Family<Labels, Counter>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// The router's own metrics.
#[derive(Debug)]
pub(crate) struct RouterMetrics {
    requests: Counters,
    in_flight: Gauge,
    ttft: Histograms,
    tpot: Histograms,
    prefill: Histogram,
    counting: Histogram,
    decision: Histogram,
    retries: Counters,
    local: Counters,
    handoffs: Counters,
    signatures: Counters,
    sources: Counters,
    fallbacks: Counters,
    decisions: Counters,
    prefill_choices: Counters,
    band: Histogram,
    similarity: Histogram,
    similarity_given_up: Histogram,
    distinct: Histogram,
    spills: Counter,
    scrapes: Counters,
    rejected: Counters,
}

const ATTEMPT_REASONS: [&str; 5] = ["Connect", "Timeout", "Broken", "TooManyRequests", "ServerError"];

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 1.7, 20))
}

/// Fine enough for differences of a few percent.
fn token_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.002, 1.12, 48))
}

fn micros() -> Histogram {
    Histogram::new(exponential_buckets(1e-6, 2.0, 18))
}

impl RouterMetrics {
    /// Registers everything; gives the descriptions too.
    pub(crate) fn register(metrics: &Metrics) -> (Self, Vec<Described>) {
        metrics.register(PREFIX, |registry| {
            let mut c = Catalog::new(registry);
            let this = Self::describe(&mut c);
            this.zero();
            (this, c.described)
        })
    }

    fn describe(c: &mut Catalog<'_>) -> Self {
        let histograms = |f: fn() -> Histogram| Histograms::new_with_constructor(f);
        Self {
            requests: c.add("requests", "counter", &["endpoint", "outcome"], "Requests by how they ended for the client", Counters::default()),
            in_flight: c.add("in_flight_requests", "gauge", &[], "Requests that are being served", Gauge::default()),
            ttft: c.add("time_to_first_token_seconds", "histogram", &["endpoint"], "Streams: from the request's head to the first byte of the answer", histograms(seconds)),
            tpot: c.add("time_per_output_token_seconds", "histogram", &["endpoint"], "Streams: time per token after the first, one event taken for one token", histograms(token_seconds)),
            prefill: c.add("prefill_seconds", "histogram", &[], "Prefill legs that succeeded", seconds()),
            counting: c.add("count_seconds", "histogram", &[], "Reading the activation counts out of a prefill answer", micros()),
            decision: c.add("decision_seconds", "histogram", &[], "Signature, scores and choice of the decode worker", micros()),
            retries: c.add("retries", "counter", &["leg", "reason"], "Legs that failed before the client saw a byte and could be tried again", Counters::default()),
            local: c.add("decode_only_requests", "counter", &["reason"], "Tries without hand-off in a fleet that has a prefill pool", Counters::default()),
            handoffs: c.add("handoffs", "counter", &["result"], "Hand-off objects: used by a decode worker, or abandoned (the engine frees the blocks when their lease ends)", Counters::default()),
            signatures: c.add("signature_requests", "counter", &["result"], "Requests that a signature was wanted of, by what became of it", Counters::default()),
            sources: c.add("signature_sources", "counter", &["source"], "Requests that a signature was wanted of, by what it was made from: Prefill (counts), Text, or None", Counters::default()),
            fallbacks: c.add("signature_text_fallbacks", "counter", &["reason"], "Requests signed by their text because their prefill gave no counts, by why it gave none (NoPrefill: there was no prefill)", Counters::default()),
            decisions: c.add("decisions", "counter", &["reason"], "Choices of a decode worker by reason", Counters::default()),
            prefill_choices: c.add("prefill_choices", "counter", &["result"], "Choices of a prefill worker: the prefix's owner, the next on the ring (spilled), or the least loaded", Counters::default()),
            band: c.add("band_workers", "histogram", &[], "Workers that a signed request was chosen among", Histogram::new(exponential_buckets(1.0, 2.0, 8))),
            similarity: c.add("similarity_cosine", "histogram", &[], "Similarity of signed requests to the chosen worker", Histogram::new((1..=20).map(|i| f64::from(i) * 0.05))),
            similarity_given_up: c.add("similarity_given_up_cosine", "histogram", &[], "Best similarity of any worker minus that of the chosen one", Histogram::new([0.0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32])),
            distinct: c.add("expected_distinct_experts", "histogram", &[], "MarginalCost: distinct experts per layer that the chosen worker's batch is expected to load in a step", Histogram::new(exponential_buckets(1.0, 1.5, 18))),
            spills: c.add("spilled_requests", "counter", &[], "Signed requests that the load guard sent outside their band", Counter::default()),
            scrapes: c.add("load_scrapes", "counter", &["result"], "Scrapes of decode workers' load; while they fail a worker's load is the router's own count", Counters::default()),
            rejected: c.add("rejected_updates", "counter", &["what"], "Routing documents and tables that were refused; the last good ones stay in use", Counters::default()),
        }
    }

    /// Every bounded label exists from the start, so that rates are right from the first event.
    fn zero(&self) {
        for endpoint in Endpoint::ALL {
            for outcome in ClientOutcome::ALL {
                touch(
                    &self.requests,
                    &[("endpoint", endpoint.as_str()), ("outcome", outcome.as_str())],
                );
            }
        }
        for leg in ["prefill", "decode"] {
            for reason in ATTEMPT_REASONS {
                touch(&self.retries, &[("leg", leg), ("reason", reason)]);
            }
        }
        let all = |family: &Counters, label: &'static str, values: &[&'static str]| {
            for value in values {
                touch(family, &[(label, *value)]);
            }
        };
        all(&self.local, "reason", &LocalReason::ALL.map(LocalReason::as_str));
        all(&self.decisions, "reason", &Reason::ALL.map(Reason::as_str));
        let missing = MissingSignature::ALL.map(|reason| result(Err(reason)));
        all(&self.signatures, "result", &missing);
        all(&self.signatures, "result", &[result(Ok(()))]);
        all(&self.sources, "source", &["Prefill", "Text", "None"]);
        all(&self.fallbacks, "reason", &Fallback::ALL.map(Fallback::as_str));
        all(&self.handoffs, "result", &["used", "abandoned"]);
        all(&self.prefill_choices, "result", &["owner", "spilled", "least_loaded"]);
        all(&self.scrapes, "result", &["ok", "unreadable", "failed"]);
        all(&self.rejected, "what", &["document", "table"]);
    }

    pub(crate) fn request_began(&self) {
        self.in_flight.inc();
    }

    pub(crate) fn request_ended(&self, endpoint: Endpoint, outcome: ClientOutcome) {
        self.in_flight.dec();
        inc(
            &self.requests,
            &[("endpoint", endpoint.as_str()), ("outcome", outcome.as_str())],
        );
    }

    pub(crate) fn first_token(&self, endpoint: Endpoint, after: Duration) {
        self.ttft
            .get_or_create(&vec![("endpoint", endpoint.as_str())])
            .observe(after.as_secs_f64());
    }

    pub(crate) fn per_token(&self, endpoint: Endpoint, each: Duration) {
        self.tpot
            .get_or_create(&vec![("endpoint", endpoint.as_str())])
            .observe(each.as_secs_f64());
    }

    pub(crate) fn prefilled(&self, took: Duration) {
        self.prefill.observe(took.as_secs_f64());
    }

    pub(crate) fn counted(&self, took: Duration) {
        self.counting.observe(took.as_secs_f64());
    }

    pub(crate) fn decided(&self, decision: &Decision, took: Duration) {
        self.decision.observe(took.as_secs_f64());
        inc(&self.decisions, &[("reason", decision.reason.as_str())]);
        if let (Some(best), Some(chosen)) = (decision.best_similarity, decision.chosen_similarity) {
            self.band.observe(decision.band as f64);
            self.similarity.observe(f64::from(chosen));
            self.similarity_given_up.observe(f64::from(best - chosen));
        }
        if let Some(distinct) = decision.distinct_experts {
            self.distinct.observe(f64::from(distinct));
        }
        if decision.spilled {
            self.spills.inc();
        }
    }

    pub(crate) fn retried(&self, leg: &'static str, error: &LegError) {
        inc(&self.retries, &[("leg", leg), ("reason", error.reason())]);
    }

    pub(crate) fn local(&self, reason: LocalReason) {
        inc(&self.local, &[("reason", reason.as_str())]);
    }

    pub(crate) fn handoff(&self, result: &'static str) {
        inc(&self.handoffs, &[("result", result)]);
    }

    pub(crate) fn signature(&self, signature: &Signature) {
        let outcome = match signature {
            Signature::NotAsked => return,
            Signature::Missing { reason, .. } => Err(*reason),
            Signature::Made { instead, .. } => {
                if let Some(fallback) = instead {
                    inc(&self.fallbacks, &[("reason", fallback.as_str())]);
                }
                Ok(())
            }
        };
        let source = match signature.source() {
            Some(Source::Prefill) => "Prefill",
            Some(Source::Text) => "Text",
            None => "None",
        };
        inc(&self.signatures, &[("result", result(outcome))]);
        inc(&self.sources, &[("source", source)]);
    }

    pub(crate) fn prefill_chosen(&self, result: &'static str) {
        inc(&self.prefill_choices, &[("result", result)]);
    }

    pub(crate) fn scraped(&self, result: &'static str) {
        inc(&self.scrapes, &[("result", result)]);
    }

    pub(crate) fn rejected(&self, what: &'static str) {
        inc(&self.rejected, &[("what", what)]);
    }
}

fn result(signature: Result<(), MissingSignature>) -> &'static str {
    match signature {
        Ok(()) => "signed",
        Err(MissingSignature::Missing) => "missing",
        Err(MissingSignature::Malformed) => "malformed",
        Err(MissingSignature::Geometry) => "geometry",
        Err(MissingSignature::Empty) => "empty",
        Err(MissingSignature::NoText) => "no_text",
        Err(MissingSignature::NoTextSource) => "no_text_source",
    }
}

fn inc(counters: &Counters, labels: &[(&'static str, &'static str)]) {
    counters.get_or_create(&labels.to_vec()).inc();
}

fn touch(counters: &Counters, labels: &[(&'static str, &'static str)]) {
    let _ = counters.get_or_create(&labels.to_vec());
}
