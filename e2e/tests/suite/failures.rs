//! Routers restarted, experts missing, the node killed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use coterie_crds::{conditions, names};
use coterie_e2e::{
    client::Traffic,
    fleet::{Fleet, SETTLE},
    prompts, spec,
    suite::{Suite, kubectl, xtask},
    wait::{Look, until},
};
use serde_json::json;

const DOMAINS: [&str; 4] = ["python", "legal", "zh", "ru"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn router_restarted_under_load_serves_the_same_table_at_once() -> Result<()> {
    let suite = Suite::start().await?;
    let mut spec = spec::small(suite.image("engine-sim")?);
    spec.routing.router.replicas = 2;
    let fleet = Fleet::create(&suite, "e2e-router", spec, &prompts::recorded(&DOMAINS, 240)?).await?;
    let digest = fleet.settle().await?.table.context("a table")?.digest;

    let traffic = Traffic::start(&fleet.router().await?, prompts::recorded(&DOMAINS, 400)?, 4, 32);
    let deployment = format!("deployment/{}", names::router(spec::NAME));
    kubectl(&["-n", &fleet.namespace, "rollout", "restart", &deployment]).await?;
    kubectl(&[
        "-n",
        &fleet.namespace,
        "rollout",
        "status",
        &deployment,
        "--timeout=180s",
    ])
    .await?;
    let begun = traffic.answered();
    until("traffic through the new routers", SETTLE, || async {
        let answered = traffic.answered() - begun;
        Ok(if answered >= 50 {
            Look::Done(())
        } else {
            Look::NotYet(format!("{answered} answered"))
        })
    })
    .await?;
    traffic.stop().await.expect_all_answered()?;

    let short = digest
        .trim_start_matches("sha256:")
        .get(..12)
        .context("a digest")?
        .to_owned();
    for (name, router) in fleet.pod_clients(names::ROLE_ROUTER, names::METRICS_PORT).await? {
        let metrics = router.get("/metrics").await?;
        ensure!(metrics.contains(&short), "{name} does not serve {digest}:\n{metrics}");
    }
    fleet.delete_namespace().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_without_experts_still_succeed_and_the_status_says_so() -> Result<()> {
    let suite = Suite::start().await?;
    let spec = spec::small(suite.image("engine-sim")?);
    let fleet = Fleet::create(&suite, "e2e-experts", spec, &prompts::recorded(&DOMAINS, 240)?).await?;
    fleet.settle().await?;

    for (_, prefill) in fleet.pod_clients(names::ROLE_PREFILL, names::ENGINE_PORT).await? {
        prefill.post("/sim/v1/faults", &json!({"kind": "no_experts"})).await?;
    }
    let traffic = Traffic::start(&fleet.router().await?, prompts::recorded(&DOMAINS, 400)?, 4, 16);
    // The table of these prompts knows text, which stands in for experts that do not come.
    until("text as the source", Duration::from_secs(180), || async {
        let found = fleet.status().await?.signature;
        Ok(match found {
            Some(signature) if signature.source == "Text" => Look::Done(()),
            other => Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;
    fleet.condition(conditions::SIGNATURES_AVAILABLE, "True").await?;
    fleet
        .patch(json!({"routing": {"signature": {"source": "Prefill"}}}))
        .await?;
    fleet.condition(conditions::SIGNATURES_AVAILABLE, "False").await?;
    traffic.stop().await.expect_all_answered()?;
    let status = fleet.status().await?;
    let condition = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == conditions::SIGNATURES_AVAILABLE);
    let reason = &condition.context("the condition")?.reason;
    ensure!(reason == conditions::reason::EXPERTS_MISSING, "{reason}");
    fleet.delete_namespace().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_killed_and_started_again_brings_the_fleet_back() -> Result<()> {
    let suite = Suite::start().await?;
    let spec = spec::small(suite.image("engine-sim")?);
    let fleet = Fleet::create(&suite, "e2e-node", spec, &prompts::recorded(&DOMAINS, 240)?).await?;
    let table = fleet.settle().await?.table.context("a table")?;

    xtask(&["cluster", "kill"]).await?;
    xtask(&["cluster", "up"]).await?;
    until("the fleet to answer again", Duration::from_secs(300), || async {
        let prompt = prompts::recorded(&DOMAINS, 1)?.remove(0);
        let body = coterie_e2e::client::completion(&prompt.text, 8);
        Ok(match fleet.router().await?.complete(&body).await {
            Ok(_) => Look::Done(()),
            Err(error) => Look::NotYet(format!("{error:#}")),
        })
    })
    .await?;
    let status = fleet.settle().await?;
    ensure!(
        status.table.context("a table")?.digest == table.digest,
        "the table survived"
    );
    ensure!(fleet.runs().await?.len() == 1, "coming back needs no calibration");
    fleet.delete_namespace().await
}
