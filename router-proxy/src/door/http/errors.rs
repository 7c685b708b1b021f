//! Errors in OpenAI form.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;

use super::body::DoorBody;
use crate::core::{Failure, FailureKind};

/// Seconds after which a busy or unready router may be asked again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// An error of the router itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DoorError {
    NotFound,
    MethodNotAllowed,
    BadRequest,
    /// This field of the body.
    BadField(&'static str),
    BodyTooLarge,
    BodyTooSlow,
    Encoded,
    Overloaded,
    Unavailable,
    BadGateway,
    GatewayTimeout,
}

impl DoorError {
    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        const CLIENT: &str = "invalid_request_error";
        const SERVER: &str = "server_error";
        match self {
            Self::NotFound => (StatusCode::NOT_FOUND, CLIENT, "not_found"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, CLIENT, "method_not_allowed"),
            Self::BadRequest => (StatusCode::BAD_REQUEST, CLIENT, "invalid_body"),
            Self::BadField(_) => (StatusCode::BAD_REQUEST, CLIENT, "invalid_value"),
            Self::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, CLIENT, "body_too_large"),
            Self::BodyTooSlow => (StatusCode::REQUEST_TIMEOUT, CLIENT, "body_too_slow"),
            Self::Encoded => (StatusCode::UNSUPPORTED_MEDIA_TYPE, CLIENT, "content_encoding"),
            Self::Overloaded => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "router_overloaded"),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, SERVER, "unavailable"),
            Self::BadGateway => (StatusCode::BAD_GATEWAY, SERVER, "worker_failed"),
            Self::GatewayTimeout => (StatusCode::GATEWAY_TIMEOUT, SERVER, "worker_timeout"),
        }
    }

    /// The response, with a sentence for a person.
    pub(super) fn response(self, message: &str) -> Response<DoorBody> {
        let (status, kind, code) = self.parts();
        let param = match self {
            Self::BadField(name) => Some(name),
            _ => None,
        };
        let body = json!({"error": {"message": message, "type": kind, "param": param, "code": code}}).to_string();
        let mut response = Response::new(DoorBody::whole(body.into()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if matches!(self, Self::Overloaded | Self::Unavailable) {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        response
    }
}

impl From<FailureKind> for DoorError {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Unavailable => Self::Unavailable,
            FailureKind::BadGateway => Self::BadGateway,
            FailureKind::GatewayTimeout => Self::GatewayTimeout,
        }
    }
}

/// What the client hears of a failed request.
pub(super) fn failure(failure: Failure) -> Response<DoorBody> {
    match failure {
        Failure::Own { kind, message } => DoorError::from(kind).response(&message),
        Failure::Engine { head, body } => {
            let mut response = Response::new(DoorBody::whole(body));
            *response.status_mut() = head.status;
            *response.headers_mut() = super::headers::for_client(head.headers);
            if matches!(head.status.as_u16(), 429 | 503) {
                response.headers_mut().entry(header::RETRY_AFTER).or_insert(RETRY_AFTER);
            }
            response
        }
    }
}

/// The last event of a stream that broke. A client that reads it knows that the answer is not whole; `[DONE]` does not follow.
pub(super) fn event(inside_event: bool, message: &str) -> Bytes {
    let error = json!({"error": {"message": message, "type": "server_error", "param": null, "code": "stream_broken"}});
    let end_of_the_broken_one = if inside_event { "\n\n" } else { "" };
    format!("{end_of_the_broken_one}data: {error}\n\n").into()
}
