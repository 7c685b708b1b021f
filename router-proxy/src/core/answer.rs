//! An answer that has begun, and what is left to do when it ends.

use std::sync::Arc;

use bytes::Bytes;
use coterie_locality::{ActivationCounts, Sample, Source, predictor::NgramCounter};
use http::response::Parts;
use hyper::body::Incoming;
use serde::Deserialize;
use tokio::time::Instant;

use super::{
    Core,
    fields::{Fields, ObjectWriter},
    prepare::Prepared,
    request::ClientRequest,
};
use crate::{clock::Clock, routing::Active, worker::Reservation};

/// Fields of an answer that are between router and engines.
const INTERNAL: &str = "kv_transfer_params";
const INTERNAL_OF_CHOICE: &str = "routed_experts";

/// Tokens over which a worker's pace is measured: long enough to even out the network, short enough for its batch to stay the same.
const PACE_TOKENS: u64 = 16;

/// The engine's answer as far as it has come.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) head: Parts,
    pub(super) body: AnswerBody,
    /// Code of the error that the stream begins with.
    pub(super) error_event: Option<u16>,
}

/// An answer for a door to relay.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: Parts,
    pub(crate) body: AnswerBody,
    /// The stream begins with the engine's error.
    pub(crate) error_event: bool,
    /// To be kept until the last byte was relayed.
    pub(crate) completion: Completion,
}

/// Bytes of an answer.
#[derive(Debug)]
pub(crate) enum AnswerBody {
    Whole(Bytes),
    Stream { first: Bytes, rest: Incoming },
}

/// The request's place at its decode worker, and the sample it will leave.
#[derive(Debug)]
pub(crate) struct Completion {
    core: Arc<Core>,
    reservation: Reservation,
    pace: Option<(u64, Instant)>,
    active: Arc<Active>,
    counts: Option<ActivationCounts>,
    prompt_tokens: u64,
    /// Hashed n-grams of the text, where that was looked at.
    ngrams: Vec<(u32, u32)>,
    cluster: Option<(Source, u32)>,
    /// Events of the stream that carry no token: the end, a chat's role, usage.
    extra_events: u64,
}

impl Completion {
    pub(super) fn new(core: Arc<Core>, prepared: Prepared, request: &ClientRequest) -> Self {
        let role = u64::from(request.endpoint == super::Endpoint::ChatCompletions);
        let (counts, prompt_tokens) = match prepared.prefilled {
            Some(p) => (p.counts.ok(), p.prompt_tokens),
            None => (None, 0),
        };
        let keeps = prepared.active.document.statistics.max_samples > 0;
        let text = request.text.as_ref().filter(|_| keeps);
        Self {
            core,
            reservation: prepared.reservation,
            pace: None,
            active: prepared.active,
            counts,
            prompt_tokens,
            ngrams: text.map(NgramCounter::ngrams).unwrap_or_default(),
            cluster: prepared.cluster,
            extra_events: 1 + role + u64::from(request.usage_event),
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Tokens in a stream of this many events: engines send one event per token.
    pub(crate) fn tokens(&self, events: u64) -> u64 {
        events.saturating_sub(self.extra_events)
    }

    /// A stream has come to this many events: tells the policy how long its worker takes for a token.
    pub(crate) fn paced(&mut self, events: u64, now: Instant) {
        let (from, since) = *self.pace.get_or_insert((events, now));
        let tokens = events.saturating_sub(from);
        if tokens >= PACE_TOKENS {
            let took = now.saturating_duration_since(since).as_secs_f64();
            self.reservation.observed(took / tokens as f64);
            self.pace = Some((events, now));
        }
    }

    /// The answer ended, or the client left: leaves the sample. Later calls do nothing.
    pub(crate) fn ended(&mut self, generated_tokens: u64) {
        let (counts, ngrams) = (self.counts.take(), std::mem::take(&mut self.ngrams));
        if counts.is_none() && ngrams.is_empty() {
            return;
        }
        let mut sample = Sample::new(self.active.fingerprint.clone());
        sample.prefill_counts = counts;
        sample.ngrams = ngrams;
        sample.prompt_tokens = self.prompt_tokens;
        sample.generated_tokens = generated_tokens;
        sample.time_unix_ms = Clock::unix_ms();
        if let Some((source, cluster)) = self.cluster {
            sample.source = source;
            sample.cluster = Some(cluster);
        }
        sample.table_digest = self.active.table.as_ref().map(|t| t.digest.clone());
        self.core.statistics.sample(&self.active, sample);
    }
}

/// Tokens that a whole answer says it generated.
pub(crate) fn completion_tokens(body: &[u8]) -> u64 {
    #[derive(Deserialize)]
    struct Whole {
        usage: Usage,
    }
    #[derive(Deserialize)]
    struct Usage {
        completion_tokens: u64,
    }
    serde_json::from_slice::<Whole>(body).map_or(0, |w| w.usage.completion_tokens)
}

/// Takes hand-off objects and routed experts out of a whole answer; null remains in their place, as engines without them answer. The same
/// bytes come back when there are none, as is the rule.
pub(super) fn strip_internal(body: Bytes) -> Bytes {
    strip(&body).map_or(body, Into::into)
}

fn strip(body: &[u8]) -> Option<Vec<u8>> {
    let fields = Fields::parse(body).ok()?;
    let choices: Vec<Fields<'_>> = fields.read("choices").unwrap_or_default();
    let experts = choices.iter().any(|c| c.has(INTERNAL_OF_CHOICE));
    if !fields.has(INTERNAL) && !experts {
        return None;
    }
    let mut out = ObjectWriter::with_capacity(body.len());
    for (name, value) in fields.iter() {
        if name == INTERNAL {
            out.field(name, "null");
        } else if name == "choices" && experts {
            let kept: Vec<String> = choices.iter().map(without_experts).collect();
            out.field(name, &format!("[{}]", kept.join(",")));
        } else {
            out.field(name, value.get());
        }
    }
    Some(out.finish())
}

fn without_experts(choice: &Fields<'_>) -> String {
    let mut out = ObjectWriter::with_capacity(256);
    for (name, value) in choice.iter() {
        let internal = name == INTERNAL_OF_CHOICE;
        out.field(name, if internal { "null" } else { value.get() });
    }
    String::from_utf8_lossy(&out.finish()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_fields_are_taken_out_and_nothing_else_changes() {
        let plain = Bytes::from_static(
            b"{\"id\":\"a\", \"choices\":[{\"text\":\"x\",\"routed_experts\":null}],\"kv_transfer_params\":null}",
        );
        assert_eq!(strip_internal(plain.clone()), plain);
        let internal = br#"{"id":"a","choices":[{"text":"x","routed_experts":"AAAA","n":1e2}],"kv_transfer_params":{"a":1},"usage":{"completion_tokens":7}}"#;
        let stripped = strip_internal(Bytes::from_static(internal));
        assert_eq!(
            stripped,
            r#"{"id":"a","choices":[{"text":"x","routed_experts":null,"n":1e2}],"kv_transfer_params":null,"usage":{"completion_tokens":7}}"#
        );
        assert_eq!(completion_tokens(&stripped), 7);
        let text = Bytes::from_static(b"not json");
        assert_eq!(strip_internal(text.clone()), text);
    }
}
