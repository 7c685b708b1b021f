//! `coterie-load prompts`.

use std::io::Write;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::args::{PromptForm, PromptsArgs, SourceArgs};
use super::plan::{Mix, Planner};
use crate::recording::Recording;
use crate::tokenizer::TextCodec;

/// Recorded prompts with what is needed to write and check them.
pub(super) struct Source {
    pub(super) recording: Recording,
    pub(super) mix: Mix,
    codec: Option<TextCodec>,
}

impl Source {
    pub(super) fn load(args: &SourceArgs) -> Result<Self> {
        let recording = Recording::load(&args.recording)?;
        let mix = Mix::parse(&args.domains, &recording, args.part)?;
        let codec = match args.prompt_form {
            PromptForm::Text => Some(TextCodec::load(&args.model_dir).with_context(|| {
                format!(
                    "prompts as text need the tokenizer in {}: give --model-dir, or --prompt-form ids",
                    args.model_dir.display()
                )
            })?),
            PromptForm::Ids => None,
        };
        Ok(Self { recording, mix, codec })
    }

    /// The prompt as it stands in a request.
    pub(super) fn prompt(&self, request: usize) -> Value {
        let ids = self.recording.prompt(request);
        match &self.codec {
            Some(codec) => codec.decode(ids).into(),
            None => ids.into(),
        }
    }

    /// The text that `tokens` tokens of the recorded continuation give; None without a tokenizer.
    pub(super) fn text(&self, request: usize, tokens: usize) -> Option<String> {
        let generated = self.recording.generated(request);
        Some(
            self.codec
                .as_ref()?
                .decode_streamed(&generated[..tokens.min(generated.len())]),
        )
    }
}

/// Writes the bodies to `out`.
pub fn write_prompts(args: &PromptsArgs, out: &mut impl Write) -> Result<()> {
    ensure!(args.count > 0, "--count must be at least 1");
    let source = Source::load(&args.source)?;
    let chosen = Planner::new(source.mix.clone(), args.seed, 1.0).distinct(args.count);
    ensure!(
        chosen.len() == args.count,
        "the recording has {} requests of these domains, --count asks for {}",
        chosen.len(),
        args.count
    );
    for request in chosen {
        let mut body = json!({
            "prompt": source.prompt(request),
            "max_tokens": args.max_tokens,
            "temperature": args.temperature,
        });
        if let Some(model) = &args.model {
            body["model"] = model.as_str().into();
        }
        writeln!(out, "{body}").context("standard output is closed")?;
    }
    Ok(())
}
