//! One poll of a fleet's routers: judge what is complete, start a re-fit if traffic drifted, write the status.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use coterie_crds::v1alpha1::{
    CalibrationRun, CalibrationSource, CentroidTable, DriftMode, MoEDeployment, MoEDeploymentStatus, RunReason,
    TablePhase,
};
use coterie_locality::drift::{SignalState, Thresholds, Verdict as Judgement};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{Api, runtime::controller::Action};

use super::{
    MANAGER, baselines,
    coverage::Coverage,
    gate::{self, Gate},
    status::{self, OwnStatus, Seen},
    window::{self, Combined, SLIDES_PER_WINDOW},
};
use crate::{
    calibration,
    context::Context,
    error::Error,
    fleet::{resolve, secret, workers},
    kube_io,
    metrics::{Controller, SignalLabel, fleet_labels},
    owner::Fleet,
};

/// Shortest and longest time between two polls; between them it is half a slide.
const FASTEST: Duration = Duration::from_millis(500);
const SLOWEST: Duration = Duration::from_secs(30);
/// Unchanged fleets that are not judged.
const RESYNC: Duration = Duration::from_secs(300);

/// Polls and judges one fleet.
pub async fn reconcile(deployment: Arc<MoEDeployment>, ctx: Arc<Context>) -> Result<Action, Error> {
    let fleet = Fleet::of(&deployment)?;
    if deployment.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let now = Time(Timestamp::now());
    let current = deployment.status.clone().unwrap_or_default();
    let resolved = resolve::resolve(&deployment, &ctx.settings)?;
    let slide_ms = resolved.window_ms / SLIDES_PER_WINDOW;
    let poll = Poll {
        ctx: &ctx,
        fleet: &fleet,
        deployment: &deployment,
        current: &current,
        slide_ms,
        now: &now,
    };
    let (combined, silence) = poll.statistics().await?;
    let coverage = combined.as_ref().map(Coverage::of);
    let seen = poll.judge(combined.as_ref(), silence).await?;
    poll.show(&seen, coverage.as_ref());
    let refit = match &seen {
        Seen::Judged(_, Judgement::Drifted) => poll.refit().await?,
        _ => None,
    };
    let generation = deployment.metadata.generation;
    let (status, transitions) = status::derive(&seen, coverage.as_ref(), refit, generation, &current, &now);
    if status != OwnStatus::current(&current) {
        let api: Api<MoEDeployment> = Api::namespaced(ctx.client.clone(), &fleet.namespace);
        kube_io::status::apply(&api, &fleet.name, MANAGER, &status).await?;
        ctx.count_write(Controller::Drift);
        kube_io::events::transitions(&ctx.recorder, &deployment, &transitions, None).await;
    }
    let next = Duration::from_millis(slide_ms / 2).clamp(FASTEST, SLOWEST);
    let quiet = seen == Seen::Off && resolved.spec.prefill.is_none();
    Ok(Action::requeue(if quiet { RESYNC } else { next }))
}

struct Poll<'a> {
    ctx: &'a Context,
    fleet: &'a Fleet,
    deployment: &'a MoEDeployment,
    current: &'a MoEDeploymentStatus,
    slide_ms: u64,
    now: &'a Time,
}

impl Poll<'_> {
    /// Statistics of all ready routers, or why there are none. One silent router makes them incomplete: they are not used.
    async fn statistics(&self) -> Result<(Option<Combined>, Option<String>), Error> {
        let pods = workers::pods_of(&self.ctx.pods, self.fleet);
        let routers = workers::ready_routers(&pods);
        if routers.is_empty() {
            return Ok((None, Some("no router is ready".into())));
        }
        let Some(token) = secret::read(&self.ctx.client, self.fleet).await? else {
            return Ok((None, Some("the admin Secret does not exist yet".into())));
        };
        let mut reports = Vec::with_capacity(routers.len());
        for (router, answer) in routers.iter().zip(self.ctx.routers.statistics(&token, &routers).await) {
            match answer {
                Ok(report) => reports.push(report),
                Err(error) => {
                    tracing::debug!(fleet = %self.fleet, router = router.name, %error, "router statistics");
                    return Ok((
                        None,
                        Some(format!("router {} does not answer on its admin port", router.name)),
                    ));
                }
            }
        }
        match window::combine(&reports, self.slide_ms) {
            Ok(combined) => Ok((Some(combined), None)),
            Err(unusable) => Ok((None, Some(unusable.to_string()))),
        }
    }

    async fn judge(&self, combined: Option<&Combined>, silence: Option<String>) -> Result<Seen, Error> {
        if self.deployment.spec.drift.mode == DriftMode::Off {
            return Ok(Seen::Off);
        }
        let Some(active) = &self.current.table else {
            return Ok(Seen::Unknown("no table is active".into()));
        };
        let table = Api::<CentroidTable>::namespaced(self.ctx.client.clone(), &self.fleet.namespace)
            .get_opt(&active.name)
            .await
            .map_err(Error::read("active CentroidTable"))?
            .filter(|t| t.spec.digest == active.digest);
        let Some(baselines) = table.as_ref().and_then(baselines::of) else {
            return Ok(Seen::Unknown("the active table's baselines cannot be read".into()));
        };
        let slides = match combined {
            Some(combined) => combined.under(&active.digest).map_err(|e| e.to_string()),
            None => Err(silence.unwrap_or_default()),
        };
        let window = Duration::from_millis(self.slide_ms.saturating_mul(SLIDES_PER_WINDOW));
        let thresholds = thresholds(&self.deployment.spec.drift);
        let sustain = self.deployment.spec.drift.sustain.unsigned_abs();
        Ok(self.ctx.drift.with(self.fleet, |memory| {
            if memory.digest != active.digest {
                *memory = super::memory::Remembered {
                    digest: active.digest.clone(),
                    ..super::memory::Remembered::default()
                };
            }
            match slides {
                Ok(slides) => {
                    memory.silent_since = None;
                    let last = combined.map_or(0, |c| c.last_complete);
                    memory.advance(&baselines, &slides, last, &thresholds, sustain);
                }
                Err(why) => {
                    let at = Instant::now();
                    memory.silent_since.get_or_insert(at);
                    // Routers keep their history: a short silence loses nothing and changes no verdict.
                    if memory.silent_for(at) > window || memory.last.is_none() {
                        return Seen::Unknown(why);
                    }
                }
            }
            memory.last.map_or_else(
                || Seen::Unknown("no slide of the active table is complete yet".into()),
                |(signals, verdict)| Seen::Judged(signals, verdict),
            )
        }))
    }

    /// Starts a re-fit if the gate is open. Returns when it was started.
    async fn refit(&self) -> Result<Option<Time>, Error> {
        let observed = calibration::observe::observe(self.ctx, self.fleet).await?;
        let last = gate::last_refit(self.current.drift.as_ref(), &observed.runs);
        let gate = gate::gate(&self.deployment.spec.drift, last.as_ref(), &observed.runs, self.now);
        // Our cached status may be older than the newest table: a re-fit that has just succeeded is no reason for another.
        let judged = self.current.table.as_ref().map(|t| t.name.as_str());
        let newer = observed
            .tables
            .iter()
            .any(|t| match t.status.as_ref().and_then(|s| s.phase) {
                None | Some(TablePhase::Candidate) => true,
                Some(TablePhase::Active) => t.metadata.name.as_deref() != judged,
                Some(TablePhase::Superseded | TablePhase::Rejected) => false,
            });
        if gate != Gate::Open || newer {
            tracing::debug!(fleet = %self.fleet, ?gate, newer, "drifted, no re-fit now");
            return Ok(None);
        }
        let (slide, onset) = self
            .ctx
            .drift
            .with(self.fleet, |m| (m.judged.unwrap_or(0), m.state.onset()));
        let since_ms = onset.unwrap_or(slide).saturating_mul(self.slide_ms);
        let since = i64::try_from(since_ms)
            .ok()
            .and_then(|ms| Timestamp::from_millisecond(ms).ok())
            .map(Time);
        let name = calibration::run_names::drift(&self.fleet.name, slide);
        let new = calibration::write::NewRun {
            name: name.clone(),
            reason: RunReason::Drift,
            source: Some(CalibrationSource::Live),
            samples_since: since,
        };
        calibration::write::create_run(self.ctx, self.fleet, Controller::Drift, MANAGER, new).await?;
        let note = format!("CalibrationRun {name} was created because traffic drifted");
        let news = kube_io::events::News {
            warning: false,
            reason: "RefitStarted",
            action: "Calibrate",
            about: Some(&kube_io::events::reference::<CalibrationRun>(self.fleet, &name)),
            note: &note,
        };
        kube_io::events::publish(&self.ctx.recorder, self.deployment, news).await;
        Ok(Some(self.now.clone()))
    }

    fn show(&self, seen: &Seen, coverage: Option<&Coverage>) {
        let metrics = &self.ctx.metrics;
        let labels = fleet_labels(self.fleet);
        if let Some(share) = coverage.and_then(Coverage::share) {
            metrics.signature_coverage.get_or_create(&labels).set(share);
        }
        let Seen::Judged(signals, verdict) = seen else {
            metrics.forget_signals(self.fleet);
            return;
        };
        metrics
            .drifted
            .get_or_create(&labels)
            .set(i64::from(*verdict == Judgement::Drifted));
        for (label, signal) in [
            (SignalLabel::CentroidFit, &signals.fit),
            (SignalLabel::ClusterSkew, &signals.skew),
        ] {
            if matches!(signal.state, SignalState::On | SignalState::Off) {
                metrics.set_signal(self.fleet, label, signal.live, signal.baseline, signal.threshold);
            }
        }
    }
}

/// Thresholds of a spec. The API server checked the decimals; one that cannot be read keeps the standard value.
pub fn thresholds(drift: &coterie_crds::v1alpha1::Drift) -> Thresholds {
    let standard = Thresholds::default();
    let or = |text: &str, standard: f64| coterie_crds::quantity::decimal(text).unwrap_or(standard);
    Thresholds {
        max_fit_drop: or(&drift.max_fit_drop, standard.max_fit_drop),
        max_cluster_skew: or(&drift.max_cluster_skew, standard.max_cluster_skew),
        ..standard
    }
}
