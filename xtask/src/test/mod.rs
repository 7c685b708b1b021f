//! Everything a change must pass.

#[derive(clap::Args)]
pub(crate) struct Args {}
pub(crate) fn run(_: &Args, _: &crate::paths::Paths, _: &crate::progress::Report) -> anyhow::Result<()> { Ok(()) }
