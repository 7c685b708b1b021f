//! Changed traffic re-fits the table once; steady traffic does not.

use anyhow::{Context, Result, ensure};
use coterie_crds::{
    conditions,
    v1alpha1::{RunPhase, RunReason},
};
use coterie_e2e::{
    client::Traffic,
    fleet::{Fleet, SETTLE},
    prompts, spec,
    suite::Suite,
    wait::{Look, until},
};

/// What the fleet is calibrated on.
const BEFORE: [&str; 4] = ["python", "legal", "zh", "ru"];
/// What traffic changes to.
const AFTER: [&str; 1] = ["zh"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steady_traffic_starts_no_run_and_changed_traffic_exactly_one() -> Result<()> {
    let suite = Suite::start().await?;
    let mut spec = spec::small(suite.image("engine-sim")?);
    spec.drift.max_cluster_skew = "1.5".to_owned();
    spec.drift.max_fit_drop = "0.10".to_owned();
    let fleet = Fleet::create(&suite, "e2e-drift", spec, &prompts::recorded(&BEFORE, 240)?).await?;
    let first = fleet.settle().await?.table.context("a table")?;

    let steady = Traffic::start(&fleet.router().await?, prompts::recorded(&BEFORE, 400)?, 8, 8);
    verdict(&fleet, "Stable").await?;
    // Six further windows' worth of slides, judged one after the other.
    let answered = steady.answered();
    until("steady traffic", SETTLE, || async {
        let more = steady.answered() - answered;
        Ok(if more >= 1500 {
            Look::Done(())
        } else {
            Look::NotYet(format!("{more} more"))
        })
    })
    .await?;
    steady.stop().await.expect_all_answered()?;
    ensure!(fleet.runs().await?.len() == 1, "steady traffic must not re-fit");
    let drift = fleet.status().await?.drift.context("drift is judged")?;
    ensure!(drift.verdict == "Stable", "{drift:?}");

    let changed = Traffic::start(&fleet.router().await?, prompts::recorded(&AFTER, 400)?, 8, 8);
    fleet.condition(conditions::DRIFTED, "True").await?;
    let second = until("the re-fit's table", SETTLE, || async {
        let status = fleet.status().await?;
        let table = status.table.clone().context("a table")?;
        Ok(if table.digest == first.digest {
            Look::NotYet(serde_json::to_string(&status)?)
        } else {
            Look::Done(table)
        })
    })
    .await?;
    fleet.settle().await?;
    verdict(&fleet, "Stable").await?;
    let answered = changed.answered();
    until("traffic by the new table", SETTLE, || async {
        let more = changed.answered() - answered;
        Ok(if more >= 1000 {
            Look::Done(())
        } else {
            Look::NotYet(format!("{more} more"))
        })
    })
    .await?;
    changed.stop().await.expect_all_answered()?;

    let runs = fleet.runs().await?;
    let refits: Vec<_> = runs.iter().filter(|run| run.spec.reason == RunReason::Drift).collect();
    ensure!(refits.len() == 1, "exactly one re-fit, not {}", refits.len());
    let status = refits[0].status.clone().unwrap_or_default();
    ensure!(status.phase == RunPhase::Succeeded, "{status:?}");
    ensure!(
        status.table.as_deref() == Some(second.name.as_str()),
        "the re-fit's table is active"
    );
    ensure!(
        refits[0].spec.samples_since.is_some(),
        "a re-fit learns from the traffic since the onset"
    );
    fleet.delete_namespace().await
}

async fn verdict(fleet: &Fleet, wanted: &str) -> Result<()> {
    until(&format!("verdict {wanted}"), SETTLE, || async {
        let drift = fleet.status().await?.drift.unwrap_or_default();
        Ok(if drift.verdict == wanted {
            Look::Done(())
        } else {
            Look::NotYet(format!("{drift:?}"))
        })
    })
    .await
}
