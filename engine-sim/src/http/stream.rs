//! Answers as server-sent events, and bodies that break off on demand.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use futures::StreamExt;
use futures::stream::{self, SelectAll};
use serde::Serialize;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::admission::{Endpoint, Plan};
use super::answer::{
    ChatChunk, ChatDelta, ChatDeltaChoice, ChatEnd, CompletionChunk, CompletionDelta, Usage, UsageChunk,
};
use super::app::{App, InFlight, unix_seconds};
use super::errors::ApiError;
use super::generate::{Sequence, chat_logprobs, completion_logprobs, cut_after, engine_gone};
use crate::engine::{Event, Token};

type Numbered = stream::BoxStream<'static, (usize, Option<Event>)>;

/// A stream that is under way; dropping it (the client went away) closes the sequences' channels, which aborts them.
struct Stream {
    app: Arc<App>,
    plan: Plan,
    created: u64,
    events: SelectAll<Numbered>,
    choices: Vec<Choice>,
    open: usize,
    tokens: usize,
    cut_after: Option<usize>,
    out: VecDeque<Result<Bytes, io::Error>>,
    done: bool,
    _in_flight: InFlight,
}

#[derive(Default)]
struct Choice {
    started: bool,
    finished: bool,
    /// Characters of text so far.
    offset: usize,
}

/// The streamed answer.
pub(super) fn respond(app: Arc<App>, plan: Plan, sequences: Vec<Sequence>, in_flight: InFlight) -> Response {
    let open = sequences.len();
    let events = stream::select_all(sequences.into_iter().map(|sequence| {
        let index = sequence.index;
        let events = UnboundedReceiverStream::new(sequence.events).map(Some);
        events
            .chain(stream::once(std::future::ready(None)))
            .map(move |event| (index, event))
            .boxed()
    }));
    let mut state = Stream {
        cut_after: cut_after(&app, plan.endpoint),
        app,
        plan,
        created: unix_seconds(),
        events,
        choices: (0..open).map(|_| Choice::default()).collect(),
        open,
        tokens: 0,
        out: VecDeque::new(),
        done: false,
        _in_flight: in_flight,
    };
    if state.plan.endpoint == Endpoint::Chat {
        for index in 0..open {
            state.chat_start(index);
        }
    }
    let body = stream::unfold(state, |mut state| async move {
        loop {
            if let Some(chunk) = state.out.pop_front() {
                if chunk.is_err() {
                    // A pending body makes the server send what it has before it breaks the connection.
                    tokio::task::yield_now().await;
                }
                return Some((chunk, state));
            }
            if state.done {
                return None;
            }
            match state.events.next().await {
                Some((index, event)) => state.take(index, event),
                None => state.end(),
            }
        }
    });
    let mut response = Response::new(Body::from_stream(body));
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// A complete JSON answer; with `cut` its second half never comes.
pub(super) fn whole(json: Vec<u8>, cut: bool) -> Response {
    let body = if cut {
        let half = Bytes::copy_from_slice(&json[..json.len() / 2]);
        Body::from_stream(stream::iter([
            Ok(half),
            Err(io::Error::other("fault injected: answer cut")),
        ]))
    } else {
        Body::from(json)
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

impl Stream {
    fn take(&mut self, index: usize, event: Option<Event>) {
        match event {
            Some(Event::Token(token)) => self.token(index, token),
            Some(Event::Failed(reason)) => self.fail(&ApiError::internal(reason)),
            None if !self.choices[index].finished => self.fail(&engine_gone()),
            None => {}
        }
    }

    fn token(&mut self, index: usize, token: Token) {
        if self.cut_after.is_some_and(|after| self.tokens >= after) {
            self.out.push_back(Err(io::Error::other("fault injected: stream cut")));
            self.done = true;
            return;
        }
        self.tokens += 1;
        let last = token.finish.is_some();
        match self.plan.endpoint {
            Endpoint::Completions => self.completion_chunk(index, token),
            Endpoint::Chat => self.chat_chunk(index, token),
        }
        self.choices[index].started = true;
        self.choices[index].finished = last;
        if last {
            self.open -= 1;
            if self.open == 0 {
                self.end();
            }
        }
    }

    fn completion_chunk(&mut self, index: usize, token: Token) {
        let prompt = &self.plan.prompts[index / self.plan.n].ids;
        let first = !self.choices[index].started;
        let codec = self.app.ready.get().map(|r| &r.assets.codec);
        let text = if first && self.plan.echo {
            codec.map(|c| c.decode(prompt)).unwrap_or_default() + &token.text
        } else {
            token.text
        };
        let logprobs = codec.zip(token.logprobs.as_ref()).map(|(codec, given)| {
            completion_logprobs(
                codec,
                &[token.id],
                std::slice::from_ref(given),
                &mut self.choices[index].offset,
            )
        });
        let ids = [token.id];
        let last = token.finish.is_some();
        let (reason, stop) = token.finish.map_or((None, None), |f| (Some(f.reason.as_str()), f.stop));
        let chunk = CompletionChunk {
            id: &self.plan.id,
            object: "text_completion",
            created: self.created,
            model: &self.plan.model,
            choices: [CompletionDelta {
                index,
                text: &text,
                logprobs,
                finish_reason: reason,
                stop_reason: stop.map(Into::into),
                prompt_token_ids: (self.plan.return_token_ids && first).then_some(prompt.as_slice()),
                token_ids: self.plan.return_token_ids.then_some(&ids),
            }],
            system_fingerprint: self.fingerprint(last),
        };
        self.out.push_back(Ok(event(&chunk)));
    }

    fn chat_start(&mut self, index: usize) {
        let prompt = &self.plan.prompts[0].ids;
        let chunk = self.chat_event(
            ChatDeltaChoice {
                index,
                delta: ChatDelta {
                    role: Some("assistant"),
                    content: "",
                },
                logprobs: None,
                finish_reason: None,
                end: None,
                token_ids: None,
            },
            None,
            self.plan.return_token_ids.then_some(prompt.as_slice()),
        );
        self.out.push_back(Ok(chunk));
    }

    fn chat_chunk(&mut self, index: usize, token: Token) {
        let codec = self.app.ready.get().map(|r| &r.assets.codec);
        let logprobs = codec
            .zip(token.logprobs.as_ref())
            .map(|(codec, given)| chat_logprobs(codec, &[token.id], std::slice::from_ref(given)));
        let ids = [token.id];
        let last = token.finish.is_some();
        let (reason, stop) = token
            .finish
            .map_or((None, None), |f| (Some(f.reason.as_str()), Some(f.stop)));
        let chunk = self.chat_event(
            ChatDeltaChoice {
                index,
                delta: ChatDelta {
                    role: None,
                    content: &token.text,
                },
                logprobs,
                finish_reason: reason,
                end: stop.map(|stop| ChatEnd {
                    stop_reason: stop.map(Into::into),
                }),
                token_ids: self.plan.return_token_ids.then_some(&ids),
            },
            self.fingerprint(last),
            None,
        );
        self.out.push_back(Ok(chunk));
    }

    fn chat_event(&self, choice: ChatDeltaChoice<'_>, fingerprint: Option<&str>, prompt: Option<&[u32]>) -> Bytes {
        event(&ChatChunk {
            id: &self.plan.id,
            object: "chat.completion.chunk",
            created: self.created,
            model: &self.plan.model,
            choices: [choice],
            system_fingerprint: fingerprint,
            prompt_token_ids: prompt,
        })
    }

    /// The fingerprint is in the stream's last chunk only: the last token's, or the usage chunk.
    fn fingerprint(&self, last: bool) -> Option<&str> {
        (last && self.open == 1 && !self.plan.include_usage).then_some(self.app.fingerprint.as_str())
    }

    fn end(&mut self) {
        if self.done {
            return;
        }
        if self.plan.include_usage {
            let prompt = self.plan.prompts.iter().map(|p| p.ids.len()).sum();
            let chunk = UsageChunk {
                id: &self.plan.id,
                object: match self.plan.endpoint {
                    Endpoint::Completions => "text_completion",
                    Endpoint::Chat => "chat.completion.chunk",
                },
                created: self.created,
                model: &self.plan.model,
                choices: [],
                usage: Usage::new(prompt, self.tokens),
                system_fingerprint: &self.app.fingerprint,
            };
            self.out.push_back(Ok(event(&chunk)));
        }
        self.finish();
    }

    fn fail(&mut self, error: &ApiError) {
        self.out.push_back(Ok(event(&error.body())));
        self.finish();
    }

    fn finish(&mut self) {
        self.out.push_back(Ok(Bytes::from_static(b"data: [DONE]\n\n")));
        self.done = true;
    }
}

fn event(value: &impl Serialize) -> Bytes {
    let mut bytes = b"data: ".to_vec();
    if let Err(error) = serde_json::to_writer(&mut bytes, value) {
        tracing::error!(%error, "an event could not be written");
    }
    bytes.extend_from_slice(b"\n\n");
    Bytes::from(bytes)
}
