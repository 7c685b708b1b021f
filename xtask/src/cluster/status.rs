//! What runs, what does not, and how to reach it.

use super::{
    components::Component,
    gpus,
    kubectl::Kubectl,
    layout::{Layout, NODE},
    node::Node,
    up::ready,
};

/// Prints the state; fails unless everything runs, so that scripts can ask.
pub(crate) fn run(layout: &Layout) -> anyhow::Result<()> {
    let Some(node) = Node::running(layout) else {
        let kept = if layout.kubeconfig().exists() {
            " (its state is kept)"
        } else {
            ""
        };
        anyhow::bail!("the cluster does not run{kept}: `cargo xtask cluster up` starts it");
    };
    let programs = node.programs();
    let mut missing = Vec::new();
    for component in Component::ALL {
        let pid = programs.get(component.name());
        println!(
            "{:<25}{}",
            component.name(),
            pid.map_or_else(|| "not running".to_owned(), |pid| format!("pid {pid}"))
        );
        if pid.is_none() {
            missing.push(component.name());
        }
    }
    if let Ok(object) = Kubectl::local(layout).json(["get", "node", NODE]) {
        let gpus = gpus::allocatable(&object).map_or_else(|| "no".to_owned(), |count| count.to_string());
        println!(
            "{:<25}{}, {gpus} GPUs",
            format!("node {NODE}"),
            if ready(&object) { "Ready" } else { "not Ready" }
        );
    }
    println!("export KUBECONFIG={}", layout.kubeconfig().display());
    if !missing.is_empty() {
        anyhow::bail!(
            "not running: {}. `cargo xtask cluster up` starts them",
            missing.join(", ")
        );
    }
    Ok(())
}
