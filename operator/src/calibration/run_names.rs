//! Names of runs that the operator makes. They are deterministic, so that no reconcile can start one twice.

use coterie_crds::v1alpha1::Model;

use crate::fleet::revision::short_hash;

/// The first run of a fleet.
pub fn initial(deployment: &str) -> String {
    format!("{deployment}-initial")
}

/// The first run after the model changed.
pub fn initial_for(deployment: &str, model: &Model) -> String {
    let g = &model.geometry;
    let text = format!("{}/{}/{}/{}", model.name, g.layers, g.experts, g.top_k);
    format!("{deployment}-initial-{}", short_hash(text.as_bytes(), 8))
}

/// The run of a `spec.calibration.requestID`.
pub fn requested(deployment: &str, request_id: &str) -> String {
    format!("{deployment}-{}", short_hash(request_id.as_bytes(), 8))
}

/// The run that drift at a slide started.
pub fn drift(deployment: &str, slide: u64) -> String {
    format!("{deployment}-drift-{slide}")
}
