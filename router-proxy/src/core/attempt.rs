//! Tries of one request, all before its first byte reaches the client.

use std::sync::Arc;

use http::StatusCode;

use super::{
    Core,
    answer::{Answer, Begun, Completion},
    failure::{Failure, LegError},
    prepare::{Prepared, Stopped, Tries},
    request::ClientRequest,
};

impl Core {
    /// Answers a request: prefill, choose, decode, again where it helps.
    pub(crate) async fn answer(self: &Arc<Self>, request: &ClientRequest) -> Result<Answer, Failure> {
        let (most, within) = (self.limits.max_attempts, self.limits.retry_deadline);
        let mut tries = Tries::new();
        loop {
            tries.begin(most, within)?;
            let mut prepared = match self.prepare(request, &mut tries).await {
                Ok(prepared) => prepared,
                Err(Stopped::Retry) => continue,
                Err(Stopped::Failed(failure)) => return Err(failure),
            };
            match self.decode(request, &mut prepared).await {
                Ok(begun) if begun.error_event.is_some_and(retryable_event) && tries.another(most, within) => {
                    let worker = prepared.reservation.worker().name.clone();
                    self.decode_failed(prepared, super::upstream::broken(&worker, &"error event"), &mut tries);
                }
                Ok(begun) => return Ok(self.begun(request, prepared, begun)),
                Err(error) if error.retryable() => self.decode_failed(prepared, error, &mut tries),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn decode_failed(&self, prepared: Prepared, error: LegError, tries: &mut Tries) {
        let worker = prepared.reservation.worker();
        self.metrics.retried("decode", &error);
        tracing::info!(worker = worker.name, %error, "decode failed before its first byte");
        tries.decode.add(worker, &error);
        if matches!(error, LegError::Connect { .. }) {
            tries.kept = prepared.prefilled;
        }
        tries.failed(error);
    }

    fn begun(self: &Arc<Self>, request: &ClientRequest, prepared: Prepared, begun: Begun) -> Answer {
        let completion = Completion::new(Arc::clone(self), prepared, request);
        Answer {
            head: begun.head,
            body: begun.body,
            error_event: begun.error_event.is_some(),
            completion,
        }
    }
}

fn retryable_event(code: u16) -> bool {
    code >= 500 || code == StatusCode::TOO_MANY_REQUESTS.as_u16()
}
