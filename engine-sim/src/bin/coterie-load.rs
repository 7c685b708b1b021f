//! `coterie-load`: see `coterie-load --help`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use coterie_engine_sim::load::{LoadArgs, LoadCli, LoadCommand, run, write_prompts};
use coterie_service::{ServiceArgs, Shutdown};

#[tokio::main]
async fn main() -> ExitCode {
    let result = match LoadCli::parse_lenient(std::env::args()).command {
        LoadCommand::Prompts(args) => write_prompts(&args, &mut std::io::stdout().lock()).map(|()| ExitCode::SUCCESS),
        LoadCommand::Send(args) => load(&args).await,
    };
    result.unwrap_or_else(|error| {
        eprintln!("{error:#}");
        ExitCode::FAILURE
    })
}

/// Fails if nothing was answered: a Job that sent load into the void must not look like success.
async fn load(args: &LoadArgs) -> Result<ExitCode> {
    let service = ServiceArgs {
        log_format: args.log_format,
        log: args.log.clone(),
        ..ServiceArgs::default()
    };
    coterie_service::start("coterie-load", &service)?;
    let stop = Shutdown::on_signals()?.token();
    let report = tokio::select! {
        report = run(args) => report?,
        () = stop.cancelled() => anyhow::bail!("stopped by a signal before the load was through"),
    };
    let line = serde_json::to_string(&report)?;
    writeln!(std::io::stdout().lock(), "{line}").context("standard output is closed")?;
    Ok(if report.ok > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
