//! What arguments describe: gates read and split, the law, the fleet.

use anyhow::{Context, Result, ensure};

use super::args::FleetArgs;
use crate::fleet::compare::{Case, rate_for_batch};
use crate::fleet::gates::Recording;
use crate::fleet::law::DecodeLaw;
use crate::fleet::simulate::{Activity, FleetOptions};
use crate::fleet::steering::Calibration;
use crate::tokenizer::TextCodec;

/// Gates and law of a command.
pub(super) struct World {
    pub(super) calibration: Calibration,
    pub(super) activity: Activity,
    pub(super) law: DecodeLaw,
}

impl World {
    /// Reads the gates: the first half calibrates, the rest is judged.
    pub(super) fn load(args: &FleetArgs) -> Result<Self> {
        let codec = args.tokenizer.as_deref().map(TextCodec::load).transpose();
        let codec = codec.context("--tokenizer")?;
        let recording = Recording::load(&args.gates, codec.as_ref(), 1)?;
        ensure!(
            recording.len() >= 20,
            "{} requests are too few to simulate with",
            recording.len()
        );
        let (calibrating, judged) = recording.halves();
        let activity = Activity::new(&judged);
        Ok(Self {
            calibration: Calibration::new(calibrating, judged),
            activity,
            law: DecodeLaw::linear(
                args.step_base_ms / 1e3,
                args.step_per_expert_ms / 1e3,
                args.step_per_request_ms / 1e3,
            ),
        })
    }

    /// Arrivals a second at which workers run `batch` requests each.
    pub(super) fn rate(&self, args: &FleetArgs, batch: f64) -> Result<f64> {
        ensure!(
            batch > 0.0 && batch <= 1000.0,
            "--batch must be above 0 and at most 1000, got {batch}"
        );
        let output = match args.output {
            0 => self.activity.tokens(0),
            given => given,
        };
        Ok(rate_for_batch(
            &self.activity,
            &self.law,
            args.workers as usize,
            batch,
            output,
            1,
        ))
    }
}

/// The fleet of the arguments, `batch` being the mean load to expect.
pub(super) fn case<'a>(world: &'a World, args: &FleetArgs, name: String, rate: f64, batch: f64) -> Case<'a> {
    let running = (batch * f64::from(args.workers)).ceil() as usize;
    Case {
        name,
        calibration: &world.calibration,
        activity: &world.activity,
        law: &world.law,
        ranks: None,
        options: FleetOptions {
            unmeasured: (running * 3, running + running / 5),
            ..FleetOptions::plain(args.workers as usize)
        },
        routers: args.routers as usize,
        rate,
        requests: args.requests as usize,
        output: args.output,
    }
}
