//! What can go wrong, whether a retry can mend it, and the exit code.

use coterie_crds::outcome::OutcomeClass;

/// Exit code for flags that cannot work (`EX_USAGE`).
pub const EXIT_USAGE: u8 = 64;
/// Exit code for input that a retry does not mend (`EX_DATAERR`). A Job must not retry on it.
pub const EXIT_INPUT: u8 = 65;
/// Exit code for a failure outside: network, engines, API server (`EX_TEMPFAIL`).
pub const EXIT_INFRASTRUCTURE: u8 = 75;
/// Exit code after SIGINT or SIGTERM.
pub const EXIT_INTERRUPTED: u8 = 130;

/// Why a calibration ended without a table.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A flag is at fault.
    #[error("{message}")]
    Usage {
        /// One word of a closed set.
        reason: &'static str,
        /// What happened and what to do.
        message: String,
    },
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
    /// An error of the flags.
    pub fn usage(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Usage {
            reason,
            message: message.into(),
        }
    }

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
            Self::Usage { reason, .. } | Self::Input { reason, .. } | Self::Infrastructure { reason, .. } => reason,
            Self::Interrupted => "Interrupted",
        }
    }

    /// Whether a retry can mend it.
    pub fn class(&self) -> OutcomeClass {
        match self {
            Self::Usage { .. } | Self::Input { .. } => OutcomeClass::Input,
            Self::Infrastructure { .. } | Self::Interrupted => OutcomeClass::Infrastructure,
        }
    }

    /// What `--json` prints: reason, message and exit code under the key `error`.
    pub fn json(&self) -> String {
        let error = serde_json::json!({
            "error": {"reason": self.reason(), "message": self.to_string(), "exitCode": self.exit_code()},
        });
        error.to_string()
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage { .. } => EXIT_USAGE,
            Self::Input { .. } => EXIT_INPUT,
            Self::Infrastructure { .. } => EXIT_INFRASTRUCTURE,
            Self::Interrupted => EXIT_INTERRUPTED,
        }
    }
}
