//! The commands of the repository: `cargo xtask help` lists them.

mod background;
mod bench;
mod command;
mod demo;
mod disk;
mod doctor;
mod fuzz;
mod gen_files;
mod images;
mod paths;
mod processes;
mod progress;
mod tools;
mod wait;

mod cluster;
mod test;

use clap::{Parser, Subcommand};
use paths::Paths;
use progress::Report;

/// Commands of the Coterie repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Say what this machine lacks and how to install it.
    Doctor(doctor::Args),
    /// Build the pinned Kubernetes, etcd, CoreDNS and Helm commands (about 11 minutes once, then at once).
    Tools,
    /// Run a one-node Kubernetes on this machine.
    #[command(subcommand)]
    Cluster(cluster::Action),
    /// Build the container images, and bring them to a cluster.
    Images(images::Args),
    /// Write the files that are generated from code.
    Gen(gen_files::Args),
    /// See it work: a fleet declared, calibrated, routed, seen to drift and calibrated again.
    Demo(demo::Args),
    /// Fuzz the parsers of what strangers send; findings, corpora and seeds are in `.coterie/fuzz`.
    Fuzz(fuzz::Args),
    /// Measure beside peers.
    #[command(subcommand)]
    Bench(bench::Action),
    /// The quick part of `test`: format, directions, lints, generated files.
    Check,
    /// Everything a change must pass, end-to-end tests on the local cluster included.
    Test(test::Args),
}

fn main() -> std::process::ExitCode {
    match run(Cli::parse()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let paths = Paths::find()?;
    let report = Report::new();
    match cli.command {
        Task::Doctor(args) => doctor::run(args),
        Task::Tools => tools::ensure(&paths, &report).map(|bin| println!("{}", bin.display())),
        Task::Cluster(action) => cluster::run(action, &paths, &report),
        Task::Images(args) => images::run(&args, &paths, &report),
        Task::Gen(args) => gen_files::run(&args, &paths, &report),
        Task::Demo(args) => demo::run(&args, &paths, &report),
        Task::Fuzz(args) => fuzz::run(&args, &paths, &report),
        Task::Bench(action) => bench::run(&action, &paths, &report),
        Task::Check => test::quick(&paths, &report),
        Task::Test(args) => test::run(&args, &paths, &report),
    }
}
