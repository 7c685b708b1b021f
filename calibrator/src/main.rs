//! Collects samples, fits and publishes centroid tables.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use coterie_calibrator::{
    args::{Cli, Command},
    commands,
    error::Error,
    outcome,
};
use coterie_service::{EXIT_BAD_CONFIGURATION, Readiness, Shutdown, health_server, metrics::Metrics};

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(help) => {
            let _ = help.print();
            return if help.use_stderr() {
                EXIT_BAD_CONFIGURATION.into()
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match prepare(&cli).await {
        Ok(shutdown) => match interruptible(cli.command, shutdown).await {
            Ok(line) => {
                println(&line);
                ExitCode::SUCCESS
            }
            Err(error) => {
                tracing::error!(reason = error.reason(), "{error}");
                error.exit_code().into()
            }
        },
        Err(error) => {
            eprintln(&format!("coterie-calibrator: {error:#}"));
            EXIT_BAD_CONFIGURATION.into()
        }
    }
}

async fn prepare(cli: &Cli) -> Result<Shutdown> {
    coterie_service::start("coterie-calibrator", &cli.service)?;
    let shutdown = Shutdown::on_signals()?;
    if matches!(cli.command, Command::Run(_)) {
        let server = health_server::bind(cli.service.metrics_address, Metrics::default(), Readiness::default()).await?;
        tokio::spawn(server.run(shutdown.token()));
    }
    Ok(shutdown)
}

async fn interruptible(command: Command, shutdown: Shutdown) -> Result<String, Error> {
    let stop = shutdown.token();
    match command {
        Command::Run(args) => {
            let result = tokio::select! {
                result = commands::run(&args) => result,
                () = stop.cancelled() => Err(Error::Interrupted),
            };
            let told = match &result {
                Ok((table, report)) => outcome::succeeded(table.clone(), report.clone()),
                Err(error) => outcome::failed(error),
            };
            outcome::write(&args.termination_log, &told);
            result.map(|(table, _)| format!("published {table}"))
        }
        Command::Collect(args) => tokio::select! {
            result = commands::collect(&args) => result,
            () = stop.cancelled() => Err(Error::Interrupted),
        },
        Command::Fit(args) => commands::fit(&args),
        Command::Inspect(args) => commands::inspect(&args),
    }
}

fn println(line: &str) {
    use std::io::Write;
    // A closed pipe is the reader's business.
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn eprintln(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}
