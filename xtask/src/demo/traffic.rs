//! What is sent: domains of the recording.

/// The mix that the fleet is calibrated for.
pub(super) const BEFORE: &str = "python,rust,legal,zh,ja,de";
/// The mix that comes later: nothing of the first.
pub(super) const AFTER: &str = "c,ruby,es,ru,man_en";
/// Prompts of the calibration.
pub(super) const CALIBRATION_PROMPTS: usize = 400;
