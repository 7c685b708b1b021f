//! One request: send it, time its tokens, compare its answer.

use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Method, Response};
use serde::Deserialize;

use super::client::{HttpClient, read};

const MAX_LINE: usize = 4 << 20;

/// What a request should answer.
pub(super) struct Expected {
    pub(super) ids: Vec<u32>,
    pub(super) text: Option<String>,
}

/// A request's outcome.
#[derive(Debug)]
pub(super) enum Outcome {
    Ok {
        ttft: Option<Duration>,
        tpot: Option<Duration>,
        total: Duration,
        tokens: usize,
    },
    Failed {
        kind: &'static str,
        text: String,
    },
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
    usage: Option<Usage>,
    #[serde(borrow)]
    error: Option<&'a serde_json::value::RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    text: std::borrow::Cow<'a, str>,
    finish_reason: Option<std::borrow::Cow<'a, str>>,
    token_ids: Option<Vec<u32>>,
}

#[derive(Deserialize)]
struct Usage {
    completion_tokens: usize,
}

/// What has come of an answer.
#[derive(Default)]
struct Seen {
    first: Option<Instant>,
    last: Option<Instant>,
    chunks: usize,
    usage: Option<usize>,
    text: String,
    ids: Option<Vec<u32>>,
    finished: bool,
    done: bool,
    error: Option<String>,
}

pub(super) async fn measure(
    client: &HttpClient,
    url: &str,
    body: Vec<u8>,
    stream: bool,
    expected: Option<Expected>,
    timeout: Duration,
) -> Outcome {
    let start = Instant::now();
    let exchange = async {
        let response = match client.send(Method::POST, url, body).await {
            Ok(response) => response,
            Err(error) => return failed("connection", error.to_string()),
        };
        let status = response.status();
        if !status.is_success() {
            let body = read(response.into_body()).await.unwrap_or_default();
            let text = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
            let kind = if status.is_client_error() {
                "http_4xx"
            } else {
                "http_5xx"
            };
            return failed(kind, format!("{status}: {text}"));
        }
        let seen = if stream {
            streamed(response).await
        } else {
            at_once(response).await
        };
        match seen {
            Ok(seen) => judge(start, seen, stream, expected),
            Err(text) => failed("broken", text),
        }
    };
    let outcome = tokio::time::timeout(timeout, exchange).await;
    outcome.unwrap_or_else(|_| failed("timeout", format!("no end after {} s", timeout.as_secs_f64())))
}

fn failed(kind: &'static str, text: String) -> Outcome {
    Outcome::Failed { kind, text }
}

async fn at_once(response: Response<Incoming>) -> Result<Seen, String> {
    let body = read(response.into_body()).await.map_err(|e| e.to_string())?;
    let mut seen = Seen {
        done: true,
        ..Seen::default()
    };
    take(&mut seen, &body)?;
    Ok(seen)
}

async fn streamed(response: Response<Incoming>) -> Result<Seen, String> {
    let mut body = response.into_body();
    let mut seen = Seen::default();
    let mut buffer: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| format!("the stream broke after {} chunks: {e}", seen.chunks))?;
        let Some(data) = frame.data_ref() else { continue };
        buffer.extend_from_slice(data);
        let mut from = 0;
        while let Some(length) = buffer[from..].iter().position(|b| *b == b'\n') {
            line(&mut seen, &buffer[from..from + length])?;
            from += length + 1;
        }
        buffer.drain(..from);
        if buffer.len() > MAX_LINE {
            return Err(format!("an event is longer than {MAX_LINE} bytes"));
        }
    }
    Ok(seen)
}

fn line(seen: &mut Seen, line: &[u8]) -> Result<(), String> {
    let Some(data) = line.strip_prefix(b"data:") else {
        return Ok(());
    };
    let data = data.trim_ascii();
    if data == b"[DONE]" {
        seen.done = true;
        return Ok(());
    }
    take(seen, data)
}

fn take(seen: &mut Seen, json: &[u8]) -> Result<(), String> {
    let chunk: Chunk<'_> =
        serde_json::from_slice(json).map_err(|e| format!("a chunk is no JSON of a completion: {e}"))?;
    if let Some(error) = chunk.error {
        seen.error = Some(error.get().to_owned());
    }
    for choice in chunk.choices {
        let now = Instant::now();
        seen.first.get_or_insert(now);
        seen.last = Some(now);
        seen.chunks += 1;
        seen.text.push_str(&choice.text);
        seen.finished |= choice.finish_reason.is_some();
        if let Some(ids) = choice.token_ids {
            seen.ids.get_or_insert_default().extend(ids);
        }
    }
    if let Some(usage) = chunk.usage {
        seen.usage = Some(usage.completion_tokens);
    }
    Ok(())
}

fn judge(start: Instant, seen: Seen, stream: bool, expected: Option<Expected>) -> Outcome {
    if let Some(error) = seen.error {
        return failed("stream_error", error);
    }
    if !seen.finished || !seen.done {
        return failed(
            "truncated",
            format!("the answer ended after {} chunks without a finish reason", seen.chunks),
        );
    }
    let tokens = seen.usage.unwrap_or(seen.chunks);
    if let Some(expected) = expected {
        let same_ids = seen.ids.as_ref().is_none_or(|ids| *ids == expected.ids);
        let same_text = expected.text.as_ref().is_none_or(|text| *text == seen.text);
        if !same_ids || !same_text || tokens != expected.ids.len() {
            let got: String = seen.text.chars().take(60).collect();
            let want: String = expected.text.unwrap_or_default().chars().take(60).collect();
            return failed(
                "wrong_answer",
                format!("{tokens} tokens {got:?} instead of {} {want:?}", expected.ids.len()),
            );
        }
    }
    let (ttft, tpot) = match (seen.first, seen.last) {
        (Some(first), Some(last)) if stream => {
            let gaps = tokens.saturating_sub(1) as u32;
            (Some(first - start), (gaps > 0).then(|| (last - first) / gaps.max(1)))
        }
        _ => (None, None),
    };
    Outcome::Ok {
        ttft,
        tpot,
        total: start.elapsed(),
        tokens,
    }
}
