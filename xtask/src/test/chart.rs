//! The Helm chart, without a cluster.

use super::Run;
use crate::{
    command::{command, quiet},
    tools,
};

/// Lints the chart and renders it offline.
pub(super) fn check(run: &mut Run<'_>) -> anyhow::Result<()> {
    run.wait_for_tools()?;
    let helm = tools::ensure(run.paths, run.report)?.join("helm");
    let chart = run.paths.root.join("charts/coterie");
    run.report
        .step("helm lint", |_| quiet(command(&helm, ["lint", "--strict"]).arg(&chart)))?;
    run.report.step("helm template", |_| {
        quiet(
            command(
                &helm,
                ["template", "coterie", "--namespace", "coterie-system", "--include-crds"],
            )
            .arg(&chart),
        )
    })
}
