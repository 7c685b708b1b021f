//! `collect`: prompts, generated and replayed, to a container of samples.

use crate::{
    args::CollectArgs,
    collect::{probe::Probe, prompts},
    error::Error,
    output::{Content, Done},
};

/// Generates and replays prompts.
///
/// # Errors
/// See [`Error`].
pub async fn collect(args: &CollectArgs) -> Result<Done, Error> {
    let fingerprint = args.model.fingerprint()?;
    let prompts = prompts::read(&args.prompts, args.samples)?;
    let samples = Probe::resolve(&args.probe)
        .await?
        .collect(&fingerprint, &prompts)
        .await?;
    Ok(Done {
        text: format!("{} samples in {}", samples.len(), args.out.display()),
        files: vec![(args.out.clone(), Content::Samples(samples))],
    })
}
