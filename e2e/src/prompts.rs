//! Recorded prompts by domain: engines answer them from the recording, at no cost.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use coterie_engine_sim::{recording::Recording, tokenizer::TextCodec};
use serde_json::json;

/// A recorded prompt.
#[derive(Clone, Debug)]
pub struct RecordedPrompt {
    /// Its text.
    pub text: String,
    /// Its domain.
    pub domain: String,
}

/// The repository's root.
pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Up to `count` recorded prompts of the given domains, taken in turn.
///
/// # Errors
/// When the recording cannot be read or has none of them.
pub fn recorded(domains: &[&str], count: usize) -> Result<Vec<RecordedPrompt>> {
    let root = repository().join("engine-sim");
    let recording = Recording::load(&root.join("recordings/tiny-moe.npz")).context("read the recording")?;
    let codec = TextCodec::load(&root.join("models/tiny-moe")).context("read the tokenizer")?;
    let by_domain: Vec<Vec<usize>> = domains
        .iter()
        .map(|domain| {
            (0..recording.len())
                .filter(|&request| recording.domain(request) == *domain)
                .collect()
        })
        .collect();
    let longest = by_domain.iter().map(Vec::len).max().unwrap_or(0);
    let mut prompts = Vec::new();
    for turn in 0..longest {
        for requests in by_domain.iter().filter(|requests| turn < requests.len()) {
            let request = requests[turn];
            prompts.push(RecordedPrompt {
                text: codec.decode(recording.prompt(request)),
                domain: recording.domain(request).to_owned(),
            });
        }
    }
    ensure!(!prompts.is_empty(), "the recording has no prompt of {domains:?}");
    prompts.truncate(count);
    Ok(prompts)
}

/// JSON lines of completion requests, as `spec.calibration.prompts` takes them.
pub fn json_lines(prompts: &[RecordedPrompt], model: &str, tokens: u32) -> String {
    let lines = prompts.iter().map(|prompt| {
        json!({"model": model, "prompt": prompt.text, "max_tokens": tokens, "temperature": 0.8, "seed": 1}).to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}
