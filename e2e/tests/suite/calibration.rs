//! Runs that a person asks for.

use anyhow::{Context, Result, ensure};
use coterie_crds::v1alpha1::{CalibrationRun, CalibrationRunSpec, RunPhase, RunReason, TablePhase};
use coterie_e2e::{
    fleet::{Fleet, SETTLE},
    prompts, spec,
    suite::Suite,
    wait::{Look, until},
};
use kube::{ResourceExt, api::PostParams};
use serde_json::json;

const DOMAINS: [&str; 4] = ["python", "legal", "zh", "ru"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_request_id_starts_exactly_one_run() -> Result<()> {
    let suite = Suite::start().await?;
    let mut spec = spec::small(suite.image("engine-sim")?);
    spec.calibration.request_id = Some("first".to_owned());
    let fleet = Fleet::create(&suite, "e2e-request", spec, &prompts::recorded(&DOMAINS, 240)?).await?;
    let first = fleet.settle().await?;
    ensure!(observed(&first) == Some("first"), "{:?}", first.calibration);

    // Other prompts than before, so that the second table has another digest.
    fleet
        .patch(json!({"calibration": {"requestID": "second", "samples": 160}}))
        .await?;
    let second = until("the second run", SETTLE, || async {
        let status = fleet.status().await?;
        let swapped = status.table.as_ref().map(|table| &table.name) != first.table.as_ref().map(|table| &table.name);
        let done = observed(&status) == Some("second") && swapped;
        Ok(if done {
            Look::Done(status)
        } else {
            Look::NotYet(serde_json::to_string(&status)?)
        })
    })
    .await?;
    fleet.settle().await?;
    // An unrelated change and the same value again start nothing.
    fleet
        .patch(json!({"drift": {"sustain": 3}, "calibration": {"requestID": "second"}}))
        .await?;
    fleet.settle().await?;

    let runs = fleet.runs().await?;
    ensure!(
        runs.len() == 2,
        "{:?}",
        runs.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
    );
    let active = second.table.context("a table")?.name;
    for table in fleet.tables().await? {
        let phase = table.status.as_ref().and_then(|status| status.phase);
        let wanted = if table.name_any() == active {
            TablePhase::Active
        } else {
            TablePhase::Superseded
        };
        ensure!(phase == Some(wanted), "{} is {phase:?}", table.name_any());
    }
    fleet.delete_namespace().await
}

fn observed(status: &coterie_crds::v1alpha1::MoEDeploymentStatus) -> Option<&str> {
    status.calibration.as_ref()?.observed_request_id.as_deref()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_made_by_hand_is_carried_out_and_a_failed_one_says_why() -> Result<()> {
    let suite = Suite::start().await?;
    let mut spec = spec::small(suite.image("engine-sim")?);
    spec.calibration.min_samples = 200;
    let fleet = Fleet::create(&suite, "e2e-manual", spec, &prompts::recorded(&DOMAINS, 240)?).await?;
    let table = fleet.settle().await?.table.context("a table")?.name;

    let by_hand = CalibrationRunSpec {
        deployment: spec::NAME.to_owned(),
        reason: RunReason::Manual,
        source: None,
        samples_since: None,
    };
    fleet
        .api()
        .create(&PostParams::default(), &CalibrationRun::new("by-hand", by_hand))
        .await?;
    let done = finished(&fleet, "by-hand").await?;
    let status = done.status.clone().unwrap_or_default();
    ensure!(status.phase == RunPhase::Succeeded, "{status:?}");
    ensure!(
        status.report.context("a report")?.samples >= 200,
        "the report counts the samples"
    );
    ensure!(
        done.owner_references().iter().any(|owner| owner.name == spec::NAME),
        "the operator adopts a person's run"
    );

    // Too few prompts for minSamples: a retry cannot mend it, and the active table stays.
    fleet.patch(json!({"calibration": {"samples": 200}})).await?;
    let few =
        json!({"data": {"prompts.jsonl": prompts::json_lines(&prompts::recorded(&DOMAINS, 20)?, spec::MODEL, 8)}});
    let maps = fleet.api::<k8s_openapi::api::core::v1::ConfigMap>();
    maps.patch(
        spec::PROMPTS,
        &kube::api::PatchParams::default(),
        &kube::api::Patch::Merge(few),
    )
    .await?;
    let active = fleet.settle().await?.table.context("a table")?.name;
    fleet.patch(json!({"calibration": {"requestID": "too-few"}})).await?;
    let failed = until("the failed run", SETTLE, || async {
        let runs = fleet.runs().await?;
        let failed = runs.into_iter().find(|run| {
            run.status
                .as_ref()
                .is_some_and(|status| status.phase == RunPhase::Failed)
        });
        Ok(failed.map_or_else(|| Look::NotYet("no failed run".to_owned()), Look::Done))
    })
    .await?;
    let status = failed.status.unwrap_or_default();
    ensure!(status.reason.as_deref() == Some("TooFewSamples"), "{status:?}");
    ensure!(
        status
            .message
            .as_deref()
            .is_some_and(|message| message.contains("minSamples")),
        "{status:?}"
    );
    let still = fleet.status().await?.table.context("a table")?.name;
    ensure!(
        still == active && !table.is_empty(),
        "a failed run changes no table: {still} was {active}"
    );
    fleet.delete_namespace().await
}

async fn finished(fleet: &Fleet, name: &str) -> Result<CalibrationRun> {
    until("the run to end", SETTLE, || async {
        let run: CalibrationRun = fleet.api().get(name).await?;
        let phase = run.status.as_ref().map(|status| status.phase);
        let ended = matches!(
            phase,
            Some(RunPhase::Succeeded | RunPhase::Failed | RunPhase::Superseded)
        );
        Ok(if ended {
            Look::Done(run)
        } else {
            Look::NotYet(format!("{phase:?}"))
        })
    })
    .await
}
