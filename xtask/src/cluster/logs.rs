//! Logs of the cluster's components.

use super::{components::Component, layout::Layout};
use crate::command::{command, shown};

/// Lines shown of a log.
const LINES: &str = "200";

/// Shows one log, or which there are.
pub(crate) fn run(layout: &Layout, component: Option<&str>, follow: bool) -> anyhow::Result<()> {
    let names: Vec<&str> = ["node"]
        .into_iter()
        .chain(Component::ALL.map(Component::name))
        .collect();
    let Some(component) = component else {
        for name in names {
            println!("{}", layout.log(name).display());
        }
        return Ok(());
    };
    if !names.contains(&component) {
        anyhow::bail!("there is no component {component}: one of {}", names.join(", "));
    }
    let log = layout.log(component);
    if !log.exists() {
        anyhow::bail!("{component} has not been started: `cargo xtask cluster up`");
    }
    shown(command("tail", ["-n", LINES]).args(follow.then_some("-F")).arg(log))
}
