//! One reconcile of a fleet's calibration: runs forward, tables verified, the newest promoted, old ones collected, the status written.

use std::{sync::Arc, time::Duration};

use coterie_crds::{
    conditions::{self, reason},
    v1alpha1::{
        CalibrationRun, CalibrationRunStatus, CentroidTable, MoEDeployment, MoEDeploymentStatus, RunPhase, TablePhase,
    },
};
use k8s_openapi::{api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{Api, Resource, ResourceExt, runtime::controller::Action};

use super::{
    MANAGER, attempt, collect, job,
    observe::{self, Observed},
    promotion, queue,
    samples::{self, Samples},
    status::{self, OwnStatus},
    verify::{self, Verified},
    wanted, write,
};
use crate::{
    context::Context, drift::gate, error::Error, fleet, kube_io, kube_io::conditions::is_true, metrics::Controller,
    owner::Fleet,
};

const RESYNC: Duration = Duration::from_secs(300);
/// How often a run that waits for samples or for chunks is looked at.
const SOON: Duration = Duration::from_secs(2);

/// Brings the calibration of one fleet forward.
pub async fn reconcile(deployment: Arc<MoEDeployment>, ctx: Arc<Context>) -> Result<Action, Error> {
    let fleet = Fleet::of(&deployment)?;
    if deployment.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let now = Time(Timestamp::now());
    let work = Work {
        current: deployment.status.clone().unwrap_or_default(),
        ctx: &ctx,
        fleet,
        deployment: &deployment,
        now,
    };
    let mut observed = observe::observe(&ctx, &work.fleet).await?;
    let observed_request_id = work.start_wanted(&mut observed).await?;
    let verifying = work.verify_tables(&mut observed).await?;
    let waiting = work.move_runs(&mut observed).await?;
    let active = work.promote(&mut observed).await?;
    work.collect(&observed, active.as_ref()).await?;
    work.publish(&observed, active.as_ref(), observed_request_id.as_deref())
        .await?;
    Ok(Action::requeue(if verifying || waiting { SOON } else { RESYNC }))
}

struct Work<'a> {
    ctx: &'a Context,
    fleet: Fleet,
    deployment: &'a MoEDeployment,
    current: MoEDeploymentStatus,
    now: Time,
}

impl Work<'_> {
    fn condition(&self, kind: &str) -> bool {
        is_true(&self.current.conditions, kind)
    }

    /// Adopts runs that persons made, and creates the run that is wanted. Returns the requestID that has its run.
    async fn start_wanted(&self, observed: &mut Observed) -> Result<Option<String>, Error> {
        for run in &observed.runs {
            write::adopt_run(self.ctx, &self.fleet, run).await?;
        }
        let spec = &self.deployment.spec;
        let echoed = self
            .current
            .calibration
            .as_ref()
            .and_then(|c| c.observed_request_id.clone());
        let wanted = wanted::wanted(wanted::Situation {
            deployment: &self.fleet.name,
            spec,
            observed_request_id: echoed.as_deref(),
            runs: &observed.runs,
            tables: observed.tables.len(),
            usable_table: observed.tables.iter().any(|t| verify::usable(t, &spec.model)),
            available: status::hinders(&self.current, &self.deployment.spec).is_none(),
            ready: self.condition(conditions::READY)
                && self.current.observed_generation == self.deployment.metadata.generation,
        });
        if let Some(run) = wanted {
            let new = write::NewRun {
                name: run.name.clone(),
                reason: run.reason,
                source: None,
                samples_since: None,
            };
            write::create_run(self.ctx, &self.fleet, Controller::Calibration, MANAGER, new).await?;
            let note = format!("CalibrationRun {} was created", run.name);
            self.tell::<CalibrationRun>(&run.name, false, "CalibrationStarted", &note)
                .await;
            *observed = observe::observe(self.ctx, &self.fleet).await?;
        }
        Ok(spec.calibration.request_id.clone().or(echoed))
    }

    /// Verifies tables without a phase. Returns whether one is incomplete.
    async fn verify_tables(&self, observed: &mut Observed) -> Result<bool, Error> {
        let mut incomplete = false;
        for table in &mut observed.tables {
            if table.status.as_ref().is_some_and(|s| s.phase.is_some()) {
                continue;
            }
            let model = &self.deployment.spec.model;
            let verdict = verify::verify(&self.ctx.client, &self.fleet, table, model, &self.now).await?;
            let (phase, message) = match verdict {
                Verified::Incomplete(_) => {
                    incomplete = true;
                    continue;
                }
                Verified::Candidate => (TablePhase::Candidate, None),
                Verified::Rejected(why) => {
                    let note = format!("CentroidTable {}: {why}", table.name_any());
                    self.tell::<CentroidTable>(&table.name_any(), true, "TableRejected", &note)
                        .await;
                    (TablePhase::Rejected, Some(why))
                }
            };
            self.set_phase(table, phase, message).await?;
        }
        Ok(incomplete)
    }

    /// Follows running runs, retires superseded ones and starts the next. Returns whether a run waits for something that no watch shows.
    async fn move_runs(&self, observed: &mut Observed) -> Result<bool, Error> {
        let queue = queue::queue(&observed.runs);
        let mut still_running = false;
        let mut waiting = false;
        for index in 0..observed.runs.len() {
            let run = observed.runs[index].clone();
            let name = run.name_any();
            let before = run.status.clone().unwrap_or_default();
            let status = if queue.running.contains(&name) {
                let status = self.follow(&run, &observed.tables).await?;
                still_running |= status.phase == RunPhase::Running;
                // The termination message may arrive after the Job's condition.
                waiting |= status.reason.as_deref() == Some("Verifying");
                status
            } else if queue.superseded.contains(&name) {
                CalibrationRunStatus {
                    phase: RunPhase::Superseded,
                    reason: Some("NewerRun".into()),
                    message: queue
                        .next
                        .as_ref()
                        .map(|next| format!("CalibrationRun {next} took its place")),
                    completion_time: Some(self.now.clone()),
                    ..before
                }
            } else {
                continue;
            };
            self.set_run(&mut observed.runs[index], status).await?;
        }
        if let Some(index) = observed.runs.iter().position(|r| Some(r.name_any()) == queue.next) {
            let status = self.start(&observed.runs[index], still_running).await?;
            waiting |= status.reason.as_deref() == Some(reason::WAITING_FOR_SAMPLES);
            self.set_run(&mut observed.runs[index], status).await?;
        }
        Ok(waiting)
    }

    async fn follow(&self, run: &CalibrationRun, tables: &[CentroidTable]) -> Result<CalibrationRunStatus, Error> {
        let name = run.name_any();
        let job = Api::<Job>::namespaced(self.ctx.client.clone(), &self.fleet.namespace)
            .get_opt(&name)
            .await
            .map_err(Error::read("calibration Job"))?;
        let pods = attempt::pods_say(&self.ctx.pods, &self.fleet, &name);
        let table = attempt::table_of(&name, tables);
        let before = run.status.clone().unwrap_or_default();
        Ok(attempt::advance(&before, job.as_ref(), &pods, table, &self.now))
    }

    /// Starts a waiting run, or says what it waits for.
    async fn start(&self, run: &CalibrationRun, another_runs: bool) -> Result<CalibrationRunStatus, Error> {
        let before = run.status.clone().unwrap_or_default();
        let pending = |reason: &str, message: String| CalibrationRunStatus {
            phase: RunPhase::Pending,
            reason: Some(reason.into()),
            message: Some(message),
            ..before.clone()
        };
        if another_runs {
            return Ok(pending("AnotherRun", "another run is not finished".into()));
        }
        let source = match job::source(run, &self.deployment.spec) {
            Ok(source) => source,
            Err(error) => {
                return Ok(CalibrationRunStatus {
                    phase: RunPhase::Failed,
                    reason: Some("NoSource".into()),
                    message: Some(error.to_string()),
                    completion_time: Some(self.now.clone()),
                    ..before
                });
            }
        };
        if let Some(why) = status::hinders(&self.current, &self.deployment.spec) {
            return Ok(pending("FleetNotAvailable", why.into()));
        }
        if let job::Source::Live { since_ms } = source {
            let needed = u64::from(self.deployment.spec.calibration.min_samples.unsigned_abs());
            let pods = fleet::workers::pods_of(&self.ctx.pods, &self.fleet);
            match samples::count(self.ctx, &self.fleet, &pods, since_ms, needed).await? {
                Samples::Enough => {}
                Samples::TooFew(_) => {
                    return Ok(pending(
                        reason::WAITING_FOR_SAMPLES,
                        format!("routers have seen fewer than {needed} requests with a signature"),
                    ));
                }
                Samples::Unknown => {
                    return Ok(pending(
                        reason::WAITING_FOR_SAMPLES,
                        "no router answers on its admin port".into(),
                    ));
                }
            }
        }
        let image = self
            .current
            .images
            .as_ref()
            .map_or(&self.ctx.settings.calibrator_image, |i| &i.calibrator);
        let job = job::job(&self.fleet, self.deployment, run, &source, image);
        write::create_job(self.ctx, &self.fleet, &job).await?;
        Ok(CalibrationRunStatus {
            phase: RunPhase::Running,
            reason: Some("JobRunning".into()),
            message: Some("the calibration Job runs".into()),
            job: Some(job.name_any()),
            start_time: Some(self.now.clone()),
            ..before
        })
    }

    /// Activates the table that should be active.
    async fn promote(&self, observed: &mut Observed) -> Result<Option<CentroidTable>, Error> {
        let current = self.current.table.as_ref().map(|t| t.name.as_str());
        let promotion = promotion::decide(&observed.tables, current, &self.deployment.spec.model);
        for (name, phase) in &promotion.phases {
            if let Some(table) = observed.tables.iter_mut().find(|t| t.name_any() == *name) {
                let is_active = promotion.active.as_ref() == Some(name);
                let message = promotion.stands_in.filter(|_| is_active).map(ToOwned::to_owned);
                self.set_phase(table, *phase, message).await?;
            }
        }
        let active = observed
            .tables
            .iter()
            .find(|t| Some(t.name_any()) == promotion.active)
            .cloned();
        if let Some(table) = active.as_ref().filter(|t| current != Some(t.name_any().as_str())) {
            let rho = table
                .spec
                .report
                .rho
                .as_ref()
                .map(|r| format!(", rho {r}"))
                .unwrap_or_default();
            let note = format!(
                "CentroidTable {} is active: {} clusters{rho}{}",
                table.name_any(),
                table.spec.clusters,
                promotion.stands_in.map(|why| format!("; {why}")).unwrap_or_default()
            );
            self.tell::<CentroidTable>(&table.name_any(), false, "TableActivated", &note)
                .await;
        }
        Ok(active)
    }

    async fn collect(&self, observed: &Observed, active: Option<&CentroidTable>) -> Result<(), Error> {
        let active = active.map(ResourceExt::name_any);
        for name in collect::old_tables(&observed.tables, active.as_deref()) {
            write::delete::<CentroidTable>(self.ctx, &self.fleet, &name).await?;
        }
        for name in collect::old_runs(&observed.runs, &self.now) {
            write::delete::<CalibrationRun>(self.ctx, &self.fleet, &name).await?;
        }
        Ok(())
    }

    async fn publish(
        &self,
        observed: &Observed,
        active: Option<&CentroidTable>,
        request_id: Option<&str>,
    ) -> Result<(), Error> {
        let document = match active {
            Some(_) => fleet::observe::document(self.ctx, &self.fleet).await?,
            None => None,
        };
        let drifted = self.condition(conditions::DRIFTED);
        let last = gate::last_refit(self.current.drift.as_ref(), &observed.runs);
        let next = last
            .as_ref()
            .and_then(|last| gate::next_eligible(last, &self.deployment.spec.drift));
        let gate = drifted.then(|| gate::gate(&self.deployment.spec.drift, last.as_ref(), &observed.runs, &self.now));
        let (status, transitions) = status::derive(
            &status::Facts {
                runs: &observed.runs,
                active,
                document: document.as_ref(),
                observed_request_id: request_id,
                gate: gate.as_ref(),
                next_eligible: next.as_ref(),
                generation: self.deployment.metadata.generation,
                decode_workers: self.deployment.spec.decode.replicas,
            },
            &self.current,
            &self.now,
        );
        if status == OwnStatus::current(&self.current) {
            return Ok(());
        }
        let api: Api<MoEDeployment> = Api::namespaced(self.ctx.client.clone(), &self.fleet.namespace);
        kube_io::status::apply(&api, &self.fleet.name, MANAGER, &status).await?;
        self.ctx.count_write(Controller::Calibration);
        let newest = queue::by_age(&observed.runs).pop();
        let about = active
            .map(|t| kube_io::events::reference::<CentroidTable>(&self.fleet, &t.name_any()))
            .or_else(|| newest.map(|r| kube_io::events::reference::<CalibrationRun>(&self.fleet, &r.name_any())));
        kube_io::events::transitions(&self.ctx.recorder, self.deployment, &transitions, about.as_ref()).await;
        Ok(())
    }

    /// Publishes an event about a run or a table.
    async fn tell<K: Resource<DynamicType = ()>>(&self, name: &str, warning: bool, reason: &str, note: &str) {
        let news = kube_io::events::News {
            warning,
            reason,
            action: "Calibrate",
            about: Some(&kube_io::events::reference::<K>(&self.fleet, name)),
            note,
        };
        kube_io::events::publish(&self.ctx.recorder, self.deployment, news).await;
    }

    async fn set_phase(
        &self,
        table: &mut CentroidTable,
        phase: TablePhase,
        message: Option<String>,
    ) -> Result<(), Error> {
        write::table_phase(self.ctx, &self.fleet, table, phase, message.clone(), &self.now).await?;
        let status = table.status.get_or_insert_default();
        status.phase = Some(phase);
        status.message = message;
        Ok(())
    }

    async fn set_run(&self, run: &mut CalibrationRun, status: CalibrationRunStatus) -> Result<(), Error> {
        write::run_status(self.ctx, &self.fleet, run, &status).await?;
        let failed_now = status.phase == RunPhase::Failed && queue::phase(run) != RunPhase::Failed;
        if failed_now {
            let note = format!(
                "CalibrationRun {}: {}",
                run.name_any(),
                status.message.as_deref().unwrap_or("failed")
            );
            self.tell::<CalibrationRun>(&run.name_any(), true, "CalibrationFailed", &note)
                .await;
        }
        run.status = Some(status);
        Ok(())
    }
}
