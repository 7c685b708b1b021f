//! The decode leg, up to the first byte of its answer.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;
use tokio::time::timeout;

use super::{
    Core,
    answer::{AnswerBody, Begun, strip_internal},
    failure::LegError,
    prepare::Prepared,
    request::ClientRequest,
    upstream::{self, Post},
};

impl Core {
    /// Sends the decode leg and waits until its answer begins: for a stream its first bytes, else all of it. Until then nothing has
    /// reached the client, so a failure can be made good.
    pub(super) async fn decode(&self, request: &ClientRequest, prepared: &mut Prepared) -> Result<Begun, LegError> {
        let leg = self.decode_leg(request, prepared).await;
        // A stream that begins with an error may tell of the prefill worker, whose blocks could not be pulled.
        if !leg.as_ref().is_ok_and(|begun| begun.error_event.is_some()) {
            self.judge(prepared.reservation.worker(), &leg);
        }
        leg
    }

    async fn decode_leg(&self, request: &ClientRequest, prepared: &mut Prepared) -> Result<Begun, LegError> {
        prepared.reservation.dispatch();
        let worker = prepared.reservation.worker();
        let within = if request.stream {
            self.limits.first_byte_timeout
        } else {
            self.limits.answer_timeout
        };
        let post = Post {
            address: &worker.address,
            path: request.endpoint.path(),
            headers: &request.headers,
            request_id: &prepared.request_id,
            body: prepared.body.clone(),
            within,
        };
        let sent = self.upstream.post(post).await;
        if !matches!(sent, Err(LegError::Connect { .. }))
            && let Some(ticket) = prepared.prefilled.as_mut().and_then(|p| p.handoff.as_mut())
        {
            ticket.seen();
            if sent.as_ref().is_ok_and(|r| r.status().is_client_error()) {
                ticket.refused();
            }
        }
        let (head, body) = sent?.into_parts();
        if !head.status.is_success() {
            let limit = self.limits.max_answer_bytes;
            let body = upstream::read(&worker.address, body, limit, self.limits.idle_timeout).await?;
            return Err(LegError::Status {
                worker: worker.name.clone(),
                head: Box::new(head),
                body,
            });
        }
        if !request.stream {
            let limit = self.limits.max_answer_bytes;
            let body = upstream::read(&worker.address, body, limit, self.limits.idle_timeout).await?;
            return Ok(Begun {
                head,
                body: AnswerBody::Whole(strip_internal(body)),
                error_event: None,
            });
        }
        let (first, rest) = self.first_bytes(&worker.name, body).await?;
        let error_event = error_code(&first);
        Ok(Begun {
            head,
            body: AnswerBody::Stream { first, rest },
            error_event,
        })
    }

    async fn first_bytes(&self, worker: &str, mut body: Incoming) -> Result<(Bytes, Incoming), LegError> {
        let first = async {
            loop {
                match body.frame().await {
                    None => return Err(upstream::broken(worker, &"its stream ended before it began")),
                    Some(Err(error)) => return Err(upstream::broken(worker, &upstream::chain(&error))),
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(data) if !data.is_empty() => return Ok(data),
                        _ => {}
                    },
                }
            }
        };
        let first = timeout(self.limits.first_byte_timeout, first)
            .await
            .unwrap_or_else(|_| Err(upstream::late(worker)))?;
        Ok((first, body))
    }
}

/// The code of a stream that begins with an error event; 500 where the event has none. Engines report a failed KV transfer so.
fn error_code(first: &[u8]) -> Option<u16> {
    #[derive(Deserialize)]
    struct Event {
        error: Error,
    }
    #[derive(Deserialize)]
    struct Error {
        #[serde(default)]
        code: Option<serde_json::Value>,
    }
    let text = std::str::from_utf8(first).ok()?;
    let data = text.trim_start().strip_prefix("data:")?.trim_start();
    if !data.starts_with("{\"error\"") {
        return None;
    }
    let event: Event = serde_json::from_str(data.lines().next()?).ok()?;
    let code = event.error.code.and_then(|c| c.as_u64());
    Some(code.and_then(|c| u16::try_from(c).ok()).unwrap_or(500))
}

#[cfg(test)]
mod tests {
    use super::error_code;

    #[test]
    fn only_a_first_event_that_is_an_error_has_a_code() {
        assert_eq!(
            error_code(b"data: {\"error\":{\"message\":\"x\",\"code\":503}}\n\n"),
            Some(503)
        );
        assert_eq!(
            error_code(b"data: {\"error\":{\"message\":\"x\",\"code\":\"odd\"}}\n\n"),
            Some(500)
        );
        assert_eq!(error_code(b"data: {\"error\":{}}\n\ndata: [DONE]\n\n"), Some(500));
        assert_eq!(
            error_code(b"data: {\"choices\":[{\"text\":\"{\\\"error\\\"\"}]}\n\n"),
            None
        );
        assert_eq!(error_code(b": ping\n\n"), None);
        assert_eq!(error_code(b"\xff"), None);
    }
}
