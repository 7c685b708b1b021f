//! Stopping the cluster, so that nothing of it is left on this machine.

use std::fs;

use anyhow::{Context as _, bail};

use super::{host, layout::Layout, network, node::Node};
use crate::progress::Report;

/// Stops the cluster; forgets its state unless `keep`.
pub(crate) fn run(layout: &Layout, keep: bool, report: &Report) -> anyhow::Result<()> {
    if !layout.dir.exists() {
        report.say("there is no local cluster");
        return Ok(());
    }
    report.step(
        if keep {
            "stop the cluster, keep its state"
        } else {
            "stop the cluster"
        },
        |_| {
            if let Some(node) = Node::running(layout) {
                node.kill()?;
            }
            network::disconnect(layout)?;
            let left = host::restore(layout);
            if !keep {
                fs::remove_dir_all(&layout.dir).with_context(|| format!("cannot remove {}", layout.dir.display()))?;
            }
            if !left.is_empty() {
                bail!("could not put back: {}", left.join("; "));
            }
            Ok(())
        },
    )
}

/// Ends the node without notice.
pub(crate) fn kill(layout: &Layout, report: &Report) -> anyhow::Result<()> {
    let Some(node) = Node::running(layout) else {
        bail!("the cluster does not run: `cargo xtask cluster up` starts it")
    };
    report.step("kill the node", |_| node.kill())
}
