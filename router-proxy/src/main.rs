//! `coterie-router`: see `coterie-router --help`.

use std::process::ExitCode;

use clap::Parser;
use coterie_router::{Args, Router};
use coterie_service::{EXIT_BAD_CONFIGURATION, Shutdown};

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("coterie-router: {error:#}");
            ExitCode::from(EXIT_BAD_CONFIGURATION)
        }
    }
}

async fn run(args: Args) -> anyhow::Result<()> {
    coterie_service::start("coterie-router", &args.service)?;
    let shutdown = Shutdown::on_signals()?;
    let router = Router::start(args, shutdown.token()).await?;
    if router.drained().await? {
        tracing::info!("drained");
    } else {
        tracing::warn!("the drain time-out is over: streams that still ran were cut; see --drain-timeout");
    }
    Ok(())
}
