//! The command line of `coterie-sim`.

mod args;
mod compare;
mod evaluate;
mod fleet;
mod gates;
mod generate;
mod progress;
mod run;
mod steps;
mod sweep;
mod world;

use anyhow::Result;

pub use args::{Cli, Command};

/// Does what the command line asks. Results go to `out`, progress to standard error.
pub fn execute(cli: &Cli, out: &mut dyn std::io::Write) -> Result<()> {
    match &cli.command {
        Command::Run(args) => run::run(args, out),
        Command::Compare(args) => compare::compare(args, out),
        Command::Sweep(args) => sweep::sweep(args, out),
        Command::Evaluate(args) => evaluate::evaluate(args, out),
        Command::Generate(args) => generate::generate(args, out),
    }
}
