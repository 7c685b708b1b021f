//! Benchmarks of the mathematics of locality, each beside a peer on the same data in the same run. `cargo xtask bench locality` starts them.

mod cases;
mod environment;
mod exchange;
mod peer;
mod report;
mod suite;
mod synthetic;
mod timing;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use serde_json::json;

use peer::Python;
use suite::{Suite, say};

#[derive(Parser)]
#[command(name = "coterie-bench")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure and print tables.
    Run(RunArgs),
    /// One fit in a process of its own, so that its memory can be told apart.
    MeasureFit(cases::fit::MeasureArgs),
}

#[derive(clap::Args)]
struct RunArgs {
    /// Python with the peers' packages.
    #[arg(long)]
    python: PathBuf,
    /// Folder of the peers' scripts.
    #[arg(long)]
    scripts: PathBuf,
    /// Where the results go as JSON.
    #[arg(long)]
    json: PathBuf,
    /// Fewer sizes and repetitions.
    #[arg(long)]
    quick: bool,
    /// These cases only.
    #[arg(long, value_delimiter = ',', value_parser = cases::NAMES)]
    only: Vec<String>,
}

fn main() -> std::process::ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => run(args),
        Command::MeasureFit(args) => cases::fit::measure(&args),
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run(args: RunArgs) -> anyhow::Result<()> {
    let python = Python {
        program: args.python,
        scripts: args.scripts,
    };
    let mut suite = Suite::new(args.quick, python)?;
    let peers = suite.python.start(2)?.call("versions", &json!({}))?;
    for (name, case) in cases::ALL {
        if args.only.is_empty() || args.only.iter().any(|only| only == name) {
            say(name);
            let load = environment::load();
            case(&mut suite).with_context(|| format!("benchmark {name}"))?;
            suite.report.close(name, [load, environment::load()]);
        }
    }
    suite.report.environment = json!({
        "machine": environment::machine(),
        "peers": peers,
        "quick": suite.quick,
    });
    let text = serde_json::to_string_pretty(&suite.report)?;
    std::fs::write(&args.json, text).with_context(|| format!("cannot write {}", args.json.display()))
}
