//! `kubectl scale` with traffic running.

use anyhow::{Result, ensure};
use coterie_crds::{conditions, names};
use coterie_e2e::{
    client::Traffic,
    fleet::{Fleet, SETTLE},
    prompts, spec,
    suite::{Suite, kubectl},
    wait::{Look, until},
};
use serde_json::{Value, json};

const DOMAINS: [&str; 4] = ["python", "legal", "zh", "ru"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decode_pool_scales_4_3_5_under_traffic_without_a_failed_request() -> Result<()> {
    let suite = Suite::start().await?;
    let mut spec = spec::small(suite.image("engine-sim")?);
    spec.decode.replicas = 4;
    let fleet = Fleet::create(&suite, "e2e-scale", spec, &prompts::recorded(&DOMAINS, 240)?).await?;
    fleet.settle().await?;

    let traffic = Traffic::start(&fleet.router().await?, prompts::recorded(&DOMAINS, 400)?, 6, 64);
    for size in [3_usize, 5] {
        scale(&fleet, size).await?;
        let begun = traffic.answered();
        until("traffic at the new size", SETTLE, || async {
            let answered = traffic.answered() - begun;
            Ok(if answered >= 100 {
                Look::Done(())
            } else {
                Look::NotYet(format!("{answered} answered"))
            })
        })
        .await?;
    }
    traffic.stop().await.expect_all_answered()?;

    for (name, engine) in fleet.pod_clients(names::ROLE_DECODE, names::ENGINE_PORT).await? {
        let metrics = engine.get("/metrics").await?;
        let served = metrics.lines().any(|line| {
            line.starts_with("vllm:request_success_total{")
                && line.contains("\"length\"")
                && !line.ends_with(" 0.0")
                && !line.ends_with(" 0")
        });
        ensure!(served, "{name} got no request after the pool grew");
    }
    fleet.delete_namespace().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_change_rolls_the_smallest_fleet_under_traffic_without_a_failed_request() -> Result<()> {
    let suite = Suite::start().await?;
    let spec = spec::small(suite.image("engine-sim")?);
    let fleet = Fleet::create(&suite, "e2e-rollout", spec, &prompts::recorded(&DOMAINS, 240)?).await?;
    fleet.settle().await?;

    let traffic = Traffic::start(&fleet.router().await?, prompts::recorded(&DOMAINS, 400)?, 4, 32);
    // The only prefill worker goes away for a while: its requests are computed on decode workers.
    roll(&fleet, json!({"engine": {"args": ["--max-num-seqs", "32"]}})).await?;
    // Changed again at once: the last decode worker of the first change may still be away.
    roll(&fleet, json!({"engine": {"args": ["--max-num-seqs", "40"]}})).await?;
    // Without any prefill worker, and then with other engines.
    fleet.patch(json!({"prefill": {"replicas": 0}})).await?;
    fleet.condition(conditions::AVAILABLE, "True").await?;
    roll(&fleet, json!({"engine": {"args": ["--max-num-seqs", "48"]}})).await?;
    fleet.condition(conditions::READY, "True").await?;
    traffic.stop().await.expect_all_answered()?;
    fleet.delete_namespace().await
}

/// Changes the spec and waits until every worker was replaced, though the last may not be ready yet.
async fn roll(fleet: &Fleet, change: Value) -> Result<()> {
    let before = fleet.worker_uids().await?;
    fleet.patch(change).await?;
    until("every worker to be replaced", SETTLE, || async {
        let now = fleet.worker_uids().await?;
        let old: Vec<_> = now
            .iter()
            .filter(|(name, uid)| before.get(*name) == Some(uid))
            .collect();
        Ok(if old.is_empty() && now.len() == before.len() {
            Look::Done(())
        } else {
            Look::NotYet(format!("{old:?}"))
        })
    })
    .await
}

async fn scale(fleet: &Fleet, size: usize) -> Result<()> {
    kubectl(&[
        "-n",
        &fleet.namespace,
        "scale",
        "moe",
        spec::NAME,
        &format!("--replicas={size}"),
    ])
    .await?;
    until("the decode pool's size", SETTLE, || async {
        let status = fleet.status().await?.decode.unwrap_or_default();
        let pods = fleet.pods(names::ROLE_DECODE).await?.len();
        let wanted = i32::try_from(size)?;
        let settled = pods == size && status.ready == wanted && status.desired == wanted;
        Ok(if settled {
            Look::Done(())
        } else {
            Look::NotYet(format!("{pods} pods, {status:?}"))
        })
    })
    .await?;
    fleet.condition(conditions::READY, "True").await
}
