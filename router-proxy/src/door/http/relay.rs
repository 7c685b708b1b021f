//! Relays a worker's stream as it comes: the engine's bytes, frame by frame, without copying them.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::Body;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep};

use super::{client::ClientTurn, errors};
use crate::{
    core::{Completion, sse::EventCounter, upstream},
    telemetry::ClientOutcome,
};

/// A stream on its way to the client. Dropping it closes the connection to the worker.
#[derive(Debug)]
pub(crate) struct Relay {
    first: Option<Bytes>,
    upstream: Option<Incoming>,
    completion: Completion,
    turn: ClientTurn,
    /// What the end of the stream counts as, if nothing breaks.
    end: ClientOutcome,
    events: EventCounter,
    began: Instant,
    last: Instant,
    pause: Duration,
    deadline: Pin<Box<Sleep>>,
}

impl Relay {
    pub(super) fn new(
        first: Bytes,
        upstream: Incoming,
        completion: Completion,
        turn: ClientTurn,
        end: ClientOutcome,
    ) -> Self {
        let pause = completion.core().limits.idle_timeout;
        let now = Instant::now();
        Self {
            first: Some(first),
            upstream: Some(upstream),
            completion,
            turn,
            end,
            events: EventCounter::default(),
            began: now,
            last: now,
            pause,
            deadline: Box::pin(sleep(pause)),
        }
    }

    /// The stream's next bytes.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            self.turn.first_byte();
            self.events.feed(&first);
            return Poll::Ready(Some(first));
        }
        loop {
            let Some(upstream) = self.upstream.as_mut() else {
                return Poll::Ready(None);
            };
            match Pin::new(upstream).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    if data.is_empty() {
                        continue;
                    }
                    self.last = Instant::now();
                    self.deadline.as_mut().reset(self.last + self.pause);
                    self.events.feed(&data);
                    self.completion.paced(self.events.events(), self.last);
                    return Poll::Ready(Some(data));
                }
                Poll::Ready(None) => {
                    self.upstream = None;
                    self.turn.ends(self.end);
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(self.cut(&format!(
                        "the worker broke off in the middle of the answer: {}",
                        upstream::chain(&error)
                    ))));
                }
                Poll::Pending => {
                    ready!(self.deadline.as_mut().poll(context));
                    return Poll::Ready(Some(self.cut("the worker fell silent in the middle of the answer")));
                }
            }
        }
    }

    /// Ends the stream with an error event.
    fn cut(&mut self, message: &str) -> Bytes {
        tracing::warn!(reason = message, "stream cut");
        self.upstream = None;
        self.turn.ends(ClientOutcome::Cut);
        errors::event(self.events.inside(), message)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let tokens = self.completion.tokens(self.events.events());
        if let Some(gaps) = u32::try_from(tokens)
            .ok()
            .and_then(|t| t.checked_sub(1))
            .filter(|g| *g > 0)
        {
            self.turn.per_token((self.last - self.began) / gaps);
        }
        self.completion.ended(tokens);
    }
}
