//! `coterie-sim evaluate`.

use std::io::Write;

use anyhow::{Context, Result, ensure};

use super::args::EvaluateArgs;
use crate::fleet::evaluate::{Effort, Evaluation};
use crate::fleet::gates::Recording;
use crate::tokenizer::TextCodec;

pub(super) fn evaluate(args: &EvaluateArgs, out: &mut dyn Write) -> Result<()> {
    let codec = args.tokenizer.as_deref().map(TextCodec::load).transpose();
    let codec = codec.context("--tokenizer")?;
    let recording = Recording::load(&args.gates, codec.as_ref(), 1)?;
    ensure!(
        recording.len() >= 500,
        "an evaluation needs at least 500 requests, the file has {}",
        recording.len()
    );
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    Evaluation::new(recording, effort).run(&args.only, &args.out, &|line| eprintln!("{line}"))?;
    writeln!(out, "{}", args.out.with_extension("md").display())?;
    Ok(())
}
