//! Gates that a command works on: read from a file, or made up.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::fleet::gates::Recording;
use crate::fleet::gates::generate::{Generator, Plan, Shape, preset};
use crate::tokenizer::TextCodec;

/// What gates are made up of unless told otherwise.
pub(super) const MADE_UP: Plan = Plan {
    requests: 1000,
    domains: 8,
    first_domain: 0,
    blended: 0.0,
    prompt_tokens: (64, 512),
    output_tokens: 128,
    first_request: 0,
};

/// Reads the file, or makes up gates for `generate:SHAPE`.
pub(super) fn load(gates: &Path, tokenizer: Option<&Path>) -> Result<Recording> {
    if let Some(shape) = gates.to_str().and_then(|g| g.strip_prefix("generate:")) {
        ensure!(
            tokenizer.is_none(),
            "--tokenizer: generated gates have their own text, leave it out"
        );
        let (geometry, near) = Shape::parse(shape).map_err(anyhow::Error::msg).context("--gates")?;
        return Ok(Generator::new(geometry, preset(near), 1).recording(&MADE_UP));
    }
    let codec = tokenizer.map(TextCodec::load).transpose().context("--tokenizer")?;
    Ok(Recording::load(gates, codec.as_ref(), 1)?)
}
