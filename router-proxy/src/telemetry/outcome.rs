//! How requests end.

/// How a request ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientOutcome {
    /// Answered in full.
    Ok,
    /// Refused for what it asks (4xx).
    Refused,
    /// Refused because the router or every engine is busy (429).
    Overloaded,
    /// No document, no worker (503).
    Unavailable,
    /// Engines failed (5xx, or an answer that is an error).
    Failed,
    /// Engines took too long (504).
    TimedOut,
    /// The stream broke after its first byte.
    Cut,
    /// The client left first.
    ClientGone,
}

impl ClientOutcome {
    pub(super) const ALL: [Self; 8] = [
        Self::Ok,
        Self::Refused,
        Self::Overloaded,
        Self::Unavailable,
        Self::Failed,
        Self::TimedOut,
        Self::Cut,
        Self::ClientGone,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "Ok",
            Self::Refused => "Refused",
            Self::Overloaded => "Overloaded",
            Self::Unavailable => "Unavailable",
            Self::Failed => "Failed",
            Self::TimedOut => "TimedOut",
            Self::Cut => "Cut",
            Self::ClientGone => "ClientGone",
        }
    }
}
