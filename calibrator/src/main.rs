//! Collects samples, fits and publishes centroid tables.

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, parser::ValueSource};
use coterie_calibrator::{
    args::{Cli, Command, RunArgs},
    commands,
    error::{EXIT_INFRASTRUCTURE, EXIT_USAGE, Error},
    outcome,
    output::Done,
    study,
};
use coterie_service::{Readiness, Shutdown, health_server, metrics::Metrics};
use tokio_util::sync::CancellationToken;

/// Log of commands that answer a person, unless another is asked for: what they have to say is on standard output.
const QUIET_LOG: &str = "warn";

fn main() -> ExitCode {
    let parsed = Cli::command().try_get_matches().and_then(|matches| {
        let asked = matches.value_source("log") != Some(ValueSource::DefaultValue);
        Cli::from_arg_matches(&matches).map(|cli| (cli, asked))
    });
    let (mut cli, log_asked) = match parsed {
        Ok(parsed) => parsed,
        Err(help) => {
            let _ = help.print();
            return if help.use_stderr() {
                EXIT_USAGE.into()
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    if !cli.command.is_service() && !log_asked {
        QUIET_LOG.clone_into(&mut cli.service.log);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln(&format!("coterie-calibrator: no runtime: {error}"));
            return EXIT_INFRASTRUCTURE.into();
        }
    };
    let code = runtime.block_on(answer(cli));
    // An interrupted fit may go on for seconds: nothing of it is wanted any more, and the process's end ends it.
    runtime.shutdown_background();
    code
}

async fn answer(cli: Cli) -> ExitCode {
    let (json, service) = (cli.command.json(), cli.command.is_service());
    let shutdown = match prepare(&cli).await {
        Ok(shutdown) => shutdown,
        Err(error) => {
            eprintln(&format!("coterie-calibrator: {error:#}"));
            return EXIT_USAGE.into();
        }
    };
    match interruptible(cli.command, shutdown).await {
        Ok(text) => {
            if !text.is_empty() {
                println(&text);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            if service {
                tracing::error!(reason = error.reason(), "{error}");
            } else {
                eprintln(&format!("coterie-calibrator: {error}"));
            }
            if json {
                println(&error.json());
            }
            error.exit_code().into()
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

/// Runs a command; the first signal ends it. Returns what to print.
async fn interruptible(command: Command, shutdown: Shutdown) -> Result<String, Error> {
    let stop = shutdown.token();
    let done = match command {
        Command::Run(args) => return run(&args, &stop).await,
        Command::Collect(args) => tokio::select! {
            result = commands::collect(&args) => result,
            () = stop.cancelled() => Err(Error::Interrupted),
        },
        Command::Fit(args) => computed(&stop, move || commands::fit(&args)).await,
        Command::Inspect(args) => computed(&stop, move || commands::inspect(&args)).await,
        Command::Diff(args) => computed(&stop, move || commands::diff(&args)).await,
        Command::Evaluate(args) => computed(&stop, move || commands::evaluate(&args)).await,
        Command::Import(args) => computed(&stop, move || commands::import(&args)).await,
        Command::Export(args) => computed(&stop, move || commands::export(&args)).await,
        Command::Convert(args) => computed(&stop, move || commands::convert(&args)).await,
        Command::Study(args) => computed(&stop, move || study::study(&args)).await,
    }?;
    let writing = tokio::task::spawn_blocking(move || done.save(&stop).map(|()| done.text));
    writing
        .await
        .map_err(|error| Error::infrastructure("Crashed", error.to_string()))?
}

/// Work of a thread of its own, so that a signal is noticed whatever it does.
async fn computed(
    stop: &CancellationToken,
    work: impl FnOnce() -> Result<Done, Error> + Send + 'static,
) -> Result<Done, Error> {
    tokio::select! {
        result = tokio::task::spawn_blocking(work) => {
            result.map_err(|error| Error::infrastructure("Crashed", error.to_string()))?
        }
        () = stop.cancelled() => Err(Error::Interrupted),
    }
}

async fn run(args: &RunArgs, stop: &CancellationToken) -> Result<String, Error> {
    let result = tokio::select! {
        result = commands::run(args) => result,
        () = stop.cancelled() => Err(Error::Interrupted),
    };
    let told = match &result {
        Ok((table, report)) => outcome::succeeded(table.clone(), report.clone()),
        Err(error) => outcome::failed(error),
    };
    outcome::write(&args.termination_log, &told);
    result.map(|(table, _)| format!("published {table}"))
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
