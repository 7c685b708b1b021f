//! The Kubernetes operator of Coterie.

use std::process::ExitCode;

use clap::Parser;
use coterie_operator::{args::Args, run};
use coterie_service::EXIT_BAD_CONFIGURATION;

#[tokio::main]
async fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(help) => {
            let _ = help.print();
            return if help.use_stderr() {
                ExitCode::from(EXIT_BAD_CONFIGURATION)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match run::run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "ended");
            ExitCode::FAILURE
        }
    }
}
