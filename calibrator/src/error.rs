//! What can go wrong, whether a retry can mend it, and the exit code.

use coterie_crds::outcome::OutcomeClass;

/// Exit code for input that a retry does not mend (`EX_DATAERR`). A Job must not retry on it.
pub const EXIT_INPUT: u8 = 65;
/// Exit code for a failure outside: network, engines, API server (`EX_TEMPFAIL`).
pub const EXIT_INFRASTRUCTURE: u8 = 75;
/// Exit code after SIGINT or SIGTERM.
pub const EXIT_INTERRUPTED: u8 = 130;

/// Why a calibration ended without a table.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input is at fault: a retry does the same again.
    #[error("{message}")]
    Input {
        /// One word of a closed set.
        reason: &'static str,
        /// What happened and what to do.
        message: String,
    },
    /// Something outside failed: a retry may do better.
    #[error("{message}")]
    Infrastructure {
        /// One word of a closed set.
        reason: &'static str,
        /// What happened and what to do.
        message: String,
    },
    /// A signal ended it.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// An error of the input.
    pub fn input(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Input {
            reason,
            message: message.into(),
        }
    }

    /// An error outside.
    pub fn infrastructure(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Infrastructure {
            reason,
            message: message.into(),
        }
    }

    /// One word of a closed set.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Input { reason, .. } | Self::Infrastructure { reason, .. } => reason,
            Self::Interrupted => "Interrupted",
        }
    }

    /// Whether a retry can mend it.
    pub fn class(&self) -> OutcomeClass {
        match self {
            Self::Input { .. } => OutcomeClass::Input,
            Self::Infrastructure { .. } | Self::Interrupted => OutcomeClass::Infrastructure,
        }
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Input { .. } => EXIT_INPUT,
            Self::Infrastructure { .. } => EXIT_INFRASTRUCTURE,
            Self::Interrupted => EXIT_INTERRUPTED,
        }
    }
}
