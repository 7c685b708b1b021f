//! The outcome that the operator reads from the Job's termination message.

use std::path::Path;

use coterie_crds::{
    outcome::{MAX_OUTCOME_BYTES, Outcome, OutcomeClass},
    v1alpha1::RunReport,
};

use crate::error::Error;

/// Longest message, so that the whole outcome stays under Kubernetes' limit.
const MAX_MESSAGE_BYTES: usize = 1024;

/// The outcome of a run that published a table.
pub fn succeeded(table: String, report: RunReport) -> Outcome {
    Outcome {
        class: OutcomeClass::Succeeded,
        reason: "Published".to_owned(),
        message: format!("{} samples, table {table}", report.samples),
        table: Some(table),
        report: Some(report),
    }
}

/// The outcome of a run that failed.
pub fn failed(error: &Error) -> Outcome {
    let mut message = error.to_string();
    let end = (0..=MAX_MESSAGE_BYTES.min(message.len()))
        .rev()
        .find(|&at| message.is_char_boundary(at));
    message.truncate(end.unwrap_or(0));
    Outcome {
        class: error.class(),
        reason: error.reason().to_owned(),
        message,
        table: None,
        report: None,
    }
}

/// Writes the outcome; a failure to write is logged, for the exit code still tells the class.
pub fn write(path: &Path, outcome: &Outcome) {
    let written = serde_json::to_vec(outcome)
        .map_err(std::io::Error::other)
        .and_then(|json| {
            debug_assert!(json.len() <= MAX_OUTCOME_BYTES, "outcome of {} bytes", json.len());
            std::fs::write(path, json)
        });
    if let Err(error) = written {
        tracing::warn!(path = %path.display(), %error, "could not write the outcome");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let outcome = failed(&Error::input("X", "é".repeat(4000)));
        assert!(outcome.message.len() <= MAX_MESSAGE_BYTES);
        assert!(serde_json::to_vec(&outcome).unwrap().len() <= MAX_OUTCOME_BYTES);
    }
}
