//! The calibrator's outcome, which reaches the operator as the Job's termination message.

use serde::{Deserialize, Serialize};

use crate::v1alpha1::RunReport;

/// Longest termination message that Kubernetes keeps, in bytes.
pub const MAX_OUTCOME_BYTES: usize = 4096;

/// What became of a calibration Job's attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Whether a retry can mend it.
    pub class: OutcomeClass,
    /// One word, from the calibrator's closed set.
    pub reason: String,
    /// A sentence for a person, at most 1 KiB.
    pub message: String,
    /// Name of the published table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The fit's report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<RunReport>,
}

/// Whether a retry can mend a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutcomeClass {
    /// The table is published.
    Succeeded,
    /// Something outside failed (network, API server): the Job retries.
    Infrastructure,
    /// The input is at fault (too few samples, unreadable prompts, no experts in answers): a retry does the same again.
    Input,
}
