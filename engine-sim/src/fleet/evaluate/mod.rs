//! The evaluation: every table and figure of `docs/evaluation.md` from recorded gates, by one command.

mod document;
mod drift;
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
use crate::fleet::steering::Calibration;

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

    /// Runs all sections and writes tables and figures. `said` is told what is being done.
    pub fn run(&self, folder: &Path, said: &dyn Fn(&str)) -> Result<()> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut document = Document::default();
        said("recorded gates");
        self.recorded(&mut document)?;
        said("drift");
        self.drift(&mut document)?;
        said("expert parallelism");
        self.ranks(&mut document)?;
        said("several routers");
        self.routers(&mut document)?;
        said("scale");
        self.scale(&mut document)?;
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
