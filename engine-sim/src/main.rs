//! `coterie-engine-sim`: see `coterie-engine-sim serve --help`.

use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use coterie_engine_sim::cli::{Cli, Command, ServeArgs, without_unknown};
use coterie_engine_sim::engine::SystemClock;
use coterie_engine_sim::{Server, Settings};
use coterie_service::{EXIT_BAD_CONFIGURATION, Shutdown};

#[tokio::main]
async fn main() -> ExitCode {
    let (known, unknown) = without_unknown(std::env::args().collect(), &Cli::command());
    let Command::Serve(args) = Cli::parse_from(known).command;
    if let Err(error) = coterie_service::start("coterie-engine-sim", &args.service()) {
        eprintln!("{error:#}");
        return ExitCode::from(EXIT_BAD_CONFIGURATION);
    }
    if !unknown.is_empty() {
        tracing::info!(arguments = unknown.join(" "), "vLLM arguments without meaning here");
    }
    match serve(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(args: &ServeArgs) -> anyhow::Result<()> {
    let settings = Settings::from_args(args)?;
    let shutdown = Shutdown::on_signals()?;
    let stop = shutdown.token();
    let server = tokio::select! {
        server = Server::start(settings, Arc::new(SystemClock::default())) => server?,
        () = stop.cancelled() => return Ok(()),
    };
    stop.cancelled().await;
    server.drain().await
}
