//! What can go wrong with a leg, and what the client hears of it.

use bytes::Bytes;
use http::{StatusCode, response::Parts};

/// One leg's failure.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LegError {
    /// No connection: no byte of the request was sent.
    #[error("cannot connect to {worker}: {error}")]
    Connect { worker: String, error: String },
    /// No answer, or none further, in time.
    #[error("{worker} did not answer in time")]
    Timeout { worker: String },
    /// The connection broke after the request was sent, or the answer makes no sense.
    #[error("{worker} broke off: {error}")]
    Broken { worker: String, error: String },
    /// The engine refused.
    #[error("{worker} answered {}", .head.status)]
    Status {
        worker: String,
        head: Box<Parts>,
        body: Bytes,
    },
}

impl LegError {
    /// Label of the retry metric.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Connect { .. } => "Connect",
            Self::Timeout { .. } => "Timeout",
            Self::Broken { .. } => "Broken",
            Self::Status { head, .. } if head.status == StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
            Self::Status { head, .. } if head.status.is_server_error() => "ServerError",
            Self::Status { .. } => "ClientError",
        }
    }

    /// Whether another worker may do better. What the engine says about the request itself, every engine would say.
    pub(crate) fn retryable(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Timeout { .. } | Self::Broken { .. } => true,
            Self::Status { head, .. } => head.status.is_server_error() || head.status == StatusCode::TOO_MANY_REQUESTS,
        }
    }

    /// Whether the engine said that it has too much to do.
    pub(crate) fn busy(&self) -> bool {
        matches!(self, Self::Status { head, .. } if head.status == StatusCode::TOO_MANY_REQUESTS)
    }

    /// Whether the same worker may be tried again where there is no other: after it said no, that would only press it harder.
    pub(crate) fn may_repeat(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Broken { .. })
    }
}

/// What the client hears.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The router's own error.
    Own { kind: FailureKind, message: String },
    /// The engine's answer, passed on unchanged.
    Engine { head: Box<Parts>, body: Bytes },
}

/// Classes of own errors; each has one status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The router has no routing document yet, or no worker: 503.
    Unavailable,
    /// Workers cannot be reached or break off: 502.
    BadGateway,
    /// Workers do not answer in time: 504.
    GatewayTimeout,
}

impl Failure {
    pub(crate) fn unavailable(message: &str) -> Self {
        Self::Own {
            kind: FailureKind::Unavailable,
            message: message.to_owned(),
        }
    }
}

impl From<LegError> for Failure {
    fn from(error: LegError) -> Self {
        // Names and addresses of workers are for the log, not for clients.
        tracing::warn!(%error, "request failed");
        let (kind, message) = match error {
            LegError::Status { head, body, .. } => return Self::Engine { head, body },
            LegError::Timeout { .. } => (FailureKind::GatewayTimeout, "no worker answered in time; try again"),
            LegError::Connect { .. } => (FailureKind::BadGateway, "no worker can be reached; try again"),
            LegError::Broken { .. } => (FailureKind::BadGateway, "a worker broke off; try again"),
        };
        let message = message.to_owned();
        Self::Own { kind, message }
    }
}
