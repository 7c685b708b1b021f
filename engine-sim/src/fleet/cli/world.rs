//! What arguments describe: gates read and split, the law, the fleet, the workload.

use anyhow::{Context, Result, ensure};

use super::args::{FleetArgs, WorkloadArgs};
use super::steps::Steps;
use super::{fleet, gates};
use crate::fleet::compare::{Case, rate_for_batch};
use crate::fleet::gates::Recording;
use crate::fleet::simulate::{Activity, FleetOptions};
use crate::fleet::steering::Calibration;
use crate::fleet::workload::{Arrival, Mix, OutputLengths, Process, Sessions, Workload, WorkloadError, replay};

/// Requests per worker to expect at a rate given by hand: only needed for the length of the warm-up, so a generous one.
pub(super) const GENEROUS: f64 = 64.0;

/// Everything of a command but the load.
pub(super) struct World {
    pub(super) calibration: Calibration,
    activity: Activity,
    steps: Steps,
    options: FleetOptions,
    workload: Workload,
    /// A trace's arrivals are drawn from its text.
    trace: Option<(String, f64)>,
}

impl World {
    /// Reads the gates: the first half calibrates, the rest is judged. `batch` is a usual load, which placements are made for.
    pub(super) fn load(args: &FleetArgs, batch: f64) -> Result<Self> {
        let recording = gates::load(&args.gates, args.tokenizer.as_deref())?;
        ensure!(
            recording.len() >= 20,
            "{} requests are too few to simulate with",
            recording.len()
        );
        let (calibrating, judged) = recording.halves();
        let activity = Activity::new(&judged);
        let steps = Steps::new(&args.law, &calibrating, batch)?;
        let world = Self {
            options: fleet::options(args, &steps)?,
            calibration: Calibration::new(calibrating, judged),
            activity,
            steps,
            workload: workload(&args.workload),
            trace: trace(&args.workload)?,
        };
        // Wrong domains and numbers are said now, not after the fits.
        if world.trace.is_some() || !world.in_laps() {
            let duration_s = 1.0 + world.workload.mix.points.last().map_or(0.0, |p| p.time_s);
            let probe = Workload {
                rate: 200.0 / duration_s,
                duration_s,
                ..world.workload.clone()
            };
            match &world.trace {
                Some((text, speed)) => drop(replay(text, world.judged(), *speed, 1)?),
                None => drop(probe.arrivals(world.judged(), 1)?),
            }
        }
        Ok(world)
    }

    fn judged(&self) -> &Recording {
        self.calibration.judged()
    }

    /// Arrivals a second at which workers run `batch` requests each.
    pub(super) fn rate(&self, args: &FleetArgs, batch: f64) -> Result<f64> {
        ensure!(
            batch > 0.0 && batch <= 1000.0,
            "--batch must be above 0 and at most 1000, got {batch}"
        );
        let output = match self.workload.output {
            OutputLengths::Recorded => self.activity.tokens(0),
            OutputLengths::Fixed { tokens } => tokens,
            // The mean of the distribution, were it not cut.
            OutputLengths::LogNormal { median, sigma, max } => {
                let mean = median * (sigma * sigma / 2.0).exp();
                mean.clamp(1.0, f64::from(max)) as u32
            }
        };
        Ok(rate_for_batch(
            &self.activity,
            &self.steps.law,
            args.workers as usize,
            batch,
            output,
            1,
        ))
    }

    /// Rate and usual load of the trace, if there is one.
    pub(super) fn traced(&self) -> Result<Option<(f64, f64)>> {
        let Some((text, speed)) = &self.trace else {
            return Ok(None);
        };
        let arrivals = replay(text, self.judged(), *speed, 1)?;
        let last = arrivals.last().map_or(0.0, |a| a.time_s);
        Ok(Some((arrivals.len() as f64 / last.max(1e-9), GENEROUS)))
    }

    /// Whether arrivals are plain: those of the evaluation, in which no request meets itself in a batch.
    fn in_laps(&self) -> bool {
        let w = &self.workload;
        w.process == Process::Poisson
            && w.mix.points.is_empty()
            && w.sessions.turns == 1.0
            && !matches!(w.output, OutputLengths::LogNormal { .. })
    }

    /// The arrivals of a seed.
    pub(super) fn arrivals(&self, case: &Case<'_>, seed: u64) -> Result<Vec<Arrival>, WorkloadError> {
        if let Some((text, speed)) = &self.trace {
            return replay(text, self.judged(), *speed, seed);
        }
        if self.in_laps() {
            return Ok(case.arrivals(seed));
        }
        let (first, last) = case.options.unmeasured;
        let count = first + case.requests + last;
        // Conversations need a while until their follow-ups come.
        let sessions = &self.workload.sessions;
        let answer_s = sessions.answer_s_per_token * f64::from(self.activity.tokens(0));
        let ramp_s = (sessions.turns - 1.0).max(0.0) * (sessions.think_s + answer_s);
        let workload = Workload {
            rate: case.rate,
            duration_s: count as f64 / case.rate + ramp_s,
            ..self.workload.clone()
        };
        workload.arrivals(self.judged(), seed)
    }

    /// The fleet of the arguments, `batch` being the mean load to expect.
    pub(super) fn case<'a>(&'a self, args: &FleetArgs, name: String, rate: f64, batch: f64) -> Case<'a> {
        let running = (batch * f64::from(args.workers)).ceil() as usize;
        Case {
            name,
            calibration: &self.calibration,
            activity: &self.activity,
            law: &self.steps.law,
            ranks: self.steps.ranks.as_ref().map(|cost| (self.judged(), cost)),
            options: FleetOptions {
                unmeasured: if self.trace.is_some() {
                    (0, 0)
                } else {
                    (running * 3, running + running / 5)
                },
                ..self.options.clone()
            },
            routers: args.router.routers as usize,
            rate,
            requests: args.workload.requests as usize,
            output: match self.workload.output {
                OutputLengths::Fixed { tokens } => tokens,
                _ => 0,
            },
        }
    }
}

/// All but rate and duration.
fn workload(args: &WorkloadArgs) -> Workload {
    let mut points = args.mix.clone();
    points.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
    Workload {
        rate: 0.0,
        duration_s: 0.0,
        process: args.arrivals.clone(),
        output: args.output.clone(),
        sessions: Sessions {
            turns: args.turns,
            think_s: args.think_seconds,
            ..Sessions::default()
        },
        mix: Mix { points },
    }
}

fn trace(args: &WorkloadArgs) -> Result<Option<(String, f64)>> {
    let Some(path) = &args.replay else { return Ok(None) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(
        text.lines().filter(|line| !line.trim().is_empty()).count() > 2,
        "{}: a trace needs a line of column names and at least two arrivals",
        path.display()
    );
    Ok(Some((text, args.replay_speed)))
}
