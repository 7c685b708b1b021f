//! What is sent: domains of the recording.

/// The mix that the fleet is calibrated for.
pub(super) const BEFORE: &str = "python,rust,legal,zh,ja,de";
/// The mix that comes later: nothing of the first.
pub(super) const AFTER: &str = "c,fr,es,ru,man_en";
/// Prompts of the calibration, and tokens to generate for each: enough for four clusters, done in about 20 seconds. None of them is sent later.
pub(super) const CALIBRATION: [&str; 6] = ["--part", "even", "--count", "240", "--max-tokens", "64"];

/// Flags that say where the recording and the tokenizer are on this machine.
pub(super) fn files(paths: &crate::paths::Paths) -> [std::ffi::OsString; 4] {
    let folder = paths.root.join("engine-sim");
    let (recording, model) = (folder.join("recordings/tiny-moe.npz"), folder.join("models/tiny-moe"));
    [
        "--recording".into(),
        recording.into(),
        "--model-dir".into(),
        model.into(),
    ]
}
