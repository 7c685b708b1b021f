//! `coterie-sim`: see `coterie-sim --help`.

use std::process::ExitCode;

use clap::Parser;
use coterie_engine_sim::fleet::cli::{Cli, execute};

fn main() -> ExitCode {
    match execute(&Cli::parse(), &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
