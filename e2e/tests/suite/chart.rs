//! Install, upgrade and uninstall of the chart.

use anyhow::{Result, ensure};
use coterie_e2e::{
    fleet::Fleet,
    prompts, spec,
    suite::{OPERATOR_NAMESPACE, RELEASE, Suite, helm, kubectl},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upgrade_and_reinstall_move_no_worker() -> Result<()> {
    let suite = Suite::start().await?;
    let spec = spec::small(suite.image("engine-sim")?);
    let prompts = prompts::recorded(&["python", "legal", "zh", "ru"], 240)?;
    let fleet = Fleet::create(&suite, "e2e-chart", spec, &prompts).await?;
    fleet.settle().await?;
    let before = fleet.worker_uids().await?;

    // An upgrade that restarts the operator.
    helm(&[
        "upgrade",
        RELEASE,
        "charts/coterie",
        "--namespace",
        OPERATOR_NAMESPACE,
        "--reuse-values",
        "--set",
        "log.filter=debug",
        "--wait",
        "--timeout",
        "120s",
    ])
    .await?;
    fleet.settle().await?;
    ensure!(before == fleet.worker_uids().await?, "the upgrade moved workers");

    // Without the operator the fleet keeps serving, and its resources stay.
    helm(&[
        "uninstall",
        RELEASE,
        "--namespace",
        OPERATOR_NAMESPACE,
        "--wait",
        "--timeout",
        "120s",
    ])
    .await?;
    let body = coterie_e2e::client::completion(&prompts[0].text, 8);
    fleet.router().await?.complete(&body).await?;
    kubectl(&["-n", &fleet.namespace, "get", "moe", spec::NAME]).await?;

    suite.install().await?;
    fleet.settle().await?;
    ensure!(
        before == fleet.worker_uids().await?,
        "the re-installation moved workers"
    );
    fleet.delete_namespace().await
}
