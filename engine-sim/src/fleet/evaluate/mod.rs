//! The evaluation: every table and figure of `docs/evaluation.md` from recorded gates, by one command.

mod document;
mod drift;
mod paper;
mod predictors;
mod ranks;
mod recorded;
mod routers;
mod scale;

use std::path::Path;

use anyhow::{Context, Result};

pub use document::Document;

use crate::fleet::compare::{Case, rate_for_batch};
use crate::fleet::gates::Recording;
use crate::fleet::law::DecodeLaw;
use crate::fleet::simulate::{Activity, FleetOptions};
use crate::fleet::steering::{Calibration, Predictor};

/// How thoroughly.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Seeds of every comparison.
    pub seeds: u64,
    /// Requests measured in each run.
    pub requests: usize,
}

impl Effort {
    /// What the document shows.
    pub const FULL: Self = Self {
        seeds: 10,
        requests: 3000,
    };
    /// A look.
    pub const QUICK: Self = Self {
        seeds: 3,
        requests: 1000,
    };
}

/// Parts of the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Section {
    /// Every policy with every predictor at three loads.
    Recorded,
    /// Traffic that changes.
    Drift,
    /// Expert parallelism.
    Ranks,
    /// Several routers.
    Routers,
    /// Cost of a decision and size of state.
    Scale,
    /// Predictors with few and many calibration samples, and domains that calibration has not seen; needs prompts' text.
    Predictors,
    /// The ELDR paper's fleet over made-up gates, beside what was published.
    Paper,
}

impl Section {
    /// All of them, in the order of the document.
    pub const ALL: [Self; 7] = [
        Self::Recorded,
        Self::Drift,
        Self::Ranks,
        Self::Routers,
        Self::Scale,
        Self::Predictors,
        Self::Paper,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded gates",
            Self::Drift => "drift",
            Self::Ranks => "expert parallelism",
            Self::Routers => "several routers",
            Self::Scale => "scale",
            Self::Paper => "the paper's setting",
            Self::Predictors => "predictors",
        }
    }
}

/// Recorded gates, split.
pub struct Evaluation {
    recording: Recording,
    calibration: Calibration,
    activity: Activity,
    law: DecodeLaw,
    effort: Effort,
}

impl Evaluation {
    /// Fits on the first half of the requests, judges on the rest, with the plain law.
    pub fn new(recording: Recording, effort: Effort) -> Self {
        let (calibrating, judged) = recording.halves();
        Self {
            recording,
            activity: Activity::new(&judged),
            calibration: Calibration::new(calibrating, judged),
            law: DecodeLaw::plain(),
            effort,
        }
    }

    /// Runs these sections and writes tables and figures. `said` is told what is being done.
    pub fn run(&self, only: &[Section], folder: &Path, said: &dyn Fn(&str)) -> Result<()> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut document = Document::default();
        let has_text = self.calibration.predictors().contains(&Predictor::Text);
        for section in only {
            if *section == Section::Predictors && !has_text {
                said(
                    "predictors: skipped, they need a recording with prompt_ids and --tokenizer; tables stay as they are",
                );
                continue;
            }
            said(&format!("{} ...", section.name()));
            match section {
                Section::Recorded => self.recorded(&mut document)?,
                Section::Drift => self.drift(&mut document)?,
                Section::Ranks => self.ranks(&mut document)?,
                Section::Routers => self.routers(&mut document)?,
                Section::Scale => self.scale(&mut document)?,
                Section::Paper => self.paper(&mut document)?,
                Section::Predictors => self.predictors(&mut document)?,
            }
        }
        document.write(folder)
    }

    fn seeds(&self) -> Vec<u64> {
        (1..=self.effort.seeds).collect()
    }

    /// Plain workers at a mean batch.
    fn case(&self, name: &str, workers: usize, batch: f64) -> Case<'_> {
        let running = (batch * workers as f64).ceil() as usize;
        let output = self.activity.tokens(0);
        Case {
            name: name.to_owned(),
            calibration: &self.calibration,
            activity: &self.activity,
            law: &self.law,
            ranks: None,
            options: FleetOptions {
                unmeasured: (running * 3, running + running / 5),
                ..FleetOptions::plain(workers)
            },
            routers: 1,
            rate: rate_for_batch(&self.activity, &self.law, workers, batch, output, 1),
            requests: self.effort.requests,
            output: 0,
        }
    }
}
