//! Command line.
//!
//! `run` has the arguments of `run` and `collect`, `files` those of the commands that work on files, `study` those of `study`.

mod files;
mod run;
mod study;

use clap::{Args, Parser, Subcommand};
use coterie_locality::{Fingerprint, Geometry};
use coterie_service::ServiceArgs;

pub use files::{
    ConvertArgs, DiffArgs, EvaluateArgs, ExportArgs, FitArgs, FittingArgs, ImportArgs, InspectArgs, ReadingArgs,
    SampleArgs,
};
pub use run::{CollectArgs, RunArgs, Source};
pub use study::StudyArgs;

use crate::error::Error;

/// Collects samples, fits and publishes centroid tables.
///
/// Exit codes: 0 done, 64 bad flags, 65 the input is at fault (a retry does the same again), 75 something outside failed (retry), 130 interrupted.
#[derive(Parser, Debug)]
#[command(name = "coterie-calibrator", version)]
pub struct Cli {
    /// Flags that every binary has.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Collect, fit and publish a CentroidTable: what a calibration Job runs.
    Run(RunArgs),
    /// Generate and replay prompts on engines and write the samples to a file.
    Collect(CollectArgs),
    /// Fit a table to samples.
    Fit(FitArgs),
    /// Say what a table or a file of samples holds.
    Inspect(InspectArgs),
    /// Compare two tables.
    Diff(DiffArgs),
    /// Simulate batches of samples under a table.
    Evaluate(EvaluateArgs),
    /// Make a table of ELDR's centroid file.
    Import(ImportArgs),
    /// Write a table as ELDR's centroid file.
    Export(ExportArgs),
    /// Make a container of samples from an `.npz`, or a smaller one from a container.
    Convert(ConvertArgs),
    /// Fit on one half of a recording and evaluate on the other: all policies and predictors, with intervals.
    Study(StudyArgs),
}

impl Command {
    /// Whether the answer is to be JSON.
    pub fn json(&self) -> bool {
        match self {
            Self::Run(_) | Self::Collect(_) => false,
            Self::Fit(args) => args.json,
            Self::Inspect(args) => args.json,
            Self::Diff(args) => args.json,
            Self::Evaluate(args) => args.json,
            Self::Import(args) => args.json,
            Self::Export(args) => args.json,
            Self::Convert(args) => args.json,
            Self::Study(args) => args.json,
        }
    }

    /// Whether it is a service's work, whose log tells what happens. The other commands answer a person.
    pub fn is_service(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Collect(_))
    }
}

/// The model that samples and table are of.
#[derive(Args, Clone, Debug)]
pub struct ModelArgs {
    /// Served model name.
    #[arg(long)]
    pub model: String,
    /// MoE layers.
    #[arg(long)]
    pub layers: usize,
    /// Experts per layer.
    #[arg(long)]
    pub experts: usize,
    /// Experts chosen per token and layer.
    #[arg(long)]
    pub top_k: usize,
}

impl ModelArgs {
    /// Checks the geometry's bounds.
    ///
    /// # Errors
    /// When a number is out of bounds.
    pub fn fingerprint(&self) -> Result<Fingerprint, Error> {
        let geometry = Geometry::new(self.layers, self.experts, self.top_k)
            .map_err(|error| Error::input("BadGeometry", error.to_string()))?;
        Ok(Fingerprint::new(self.model.clone(), geometry))
    }
}
