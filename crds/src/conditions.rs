//! Condition types and their closed sets of reasons. Each type has one owner (docs/architecture.md, "Who writes what").

/// A ready router has a listed revision with a ready decode worker. Owner: fleet.
pub const AVAILABLE: &str = "Available";
/// Enough prefill workers are ready. Absent without a prefill pool. Owner: fleet.
pub const PREFILL_AVAILABLE: &str = "PrefillAvailable";
/// Enough decode workers are ready. Owner: fleet.
pub const DECODE_AVAILABLE: &str = "DecodeAvailable";
/// A rollout or a change of size is under way. Owner: fleet.
pub const PROGRESSING: &str = "Progressing";
/// The whole fleet is as declared; the message names the blocking object. Owner: fleet.
pub const READY: &str = "Ready";
/// A centroid table of this fleet's fingerprint is active. Owner: calibration.
pub const CALIBRATED: &str = "Calibrated";
/// All ready routers have the active table. Owner: calibration.
pub const TABLE_PROPAGATED: &str = "TablePropagated";
/// Traffic left what the active table was fitted on. Owner: drift.
pub const DRIFTED: &str = "Drifted";
/// Signatures are made of nearly every request, from counts or text. Owner: drift.
pub const SIGNATURES_AVAILABLE: &str = "SignaturesAvailable";

/// Reasons of all conditions.
pub mod reason {
    /// All is as declared.
    pub const AS_DECLARED: &str = "AsDeclared";
    /// Enough workers are ready.
    pub const ENOUGH_READY: &str = "EnoughReady";
    /// Too few workers are ready.
    pub const TOO_FEW_READY: &str = "TooFewReady";
    /// Routers serve at least one routable revision.
    pub const SERVING: &str = "Serving";
    /// No router pod is ready.
    pub const NO_ROUTER_READY: &str = "NoRouterReady";
    /// No listed revision has a ready decode worker.
    pub const NO_ROUTABLE_REVISION: &str = "NoRoutableRevision";
    /// Pods are being created, replaced or removed.
    pub const ROLLING_OUT: &str = "RollingOut";
    /// Nothing changes.
    pub const SETTLED: &str = "Settled";
    /// The spec cannot be carried out; the message says what to change.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// The API server refused an object of the plan.
    pub const APPLY_FAILED: &str = "ApplyFailed";
    /// The active table is in use.
    pub const TABLE_ACTIVE: &str = "TableActive";
    /// A calibration run is under way.
    pub const RUNNING: &str = "CalibrationRunning";
    /// There is nothing to calibrate from yet.
    pub const WAITING_FOR_SAMPLES: &str = "WaitingForSamples";
    /// The last run failed; the message has its reason.
    pub const RUN_FAILED: &str = "CalibrationFailed";
    /// No table is active.
    pub const NO_TABLE: &str = "NoTable";
    /// All ready routers acknowledged the document with the table.
    pub const ACKNOWLEDGED: &str = "Acknowledged";
    /// Some ready router has not acknowledged yet.
    pub const WAITING_FOR_ROUTERS: &str = "WaitingForRouters";
    /// Traffic fits the active table.
    pub const TRAFFIC_FITS: &str = "TrafficFits";
    /// Centroid fit fell below the table's baseline.
    pub const FIT_DROPPED: &str = "FitDropped";
    /// Cluster skew rose above the table's baseline.
    pub const SKEW_ROSE: &str = "SkewRose";
    /// Too few requests in the window, or a router did not answer.
    pub const INSUFFICIENT_SAMPLES: &str = "InsufficientSamples";
    /// Drift detection is switched off in the spec.
    pub const SWITCHED_OFF: &str = "SwitchedOff";
    /// Signatures are made of nearly every request.
    pub const COVERED: &str = "Covered";
    /// Engines answer without routed experts.
    pub const EXPERTS_MISSING: &str = "ExpertsMissing";
    /// Engines answer with routed experts that cannot be read.
    pub const EXPERTS_MALFORMED: &str = "ExpertsMalformed";
    /// Requests carry token ids instead of text, and no counts came.
    pub const TEXT_MISSING: &str = "TextMissing";
    /// Signatures are wanted of text, which the active table does not know.
    pub const NO_TEXT_SOURCE: &str = "NoTextSource";
    /// No request yet.
    pub const NO_TRAFFIC: &str = "NoTraffic";
}
