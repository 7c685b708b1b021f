//! Bringing the cluster up: from nothing, on kept state, or only what is missing of a running one.

use std::{fs, time::Duration};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::{
    addons,
    components::Component,
    config, gpus, host,
    kubectl::Kubectl,
    layout::{Layout, NODE},
    load::containerd_answers,
    network,
    node::{Node, plain_environment},
};
use crate::{
    command::{command, quiet},
    disk,
    paths::Paths,
    progress::{Report, Step},
    wait,
};

const LIMIT: Duration = Duration::from_secs(90);

/// Brings the cluster up and returns when it can be used.
pub(crate) fn run(layout: &Layout, paths: &Paths, report: &Report) -> anyhow::Result<()> {
    if let Some(warning) = disk::warning(&paths.root) {
        report.say(&format!("note: {warning}"));
    }
    let what = if Node::running(layout).is_some() {
        "check the cluster"
    } else {
        "start the cluster"
    };
    report.step(what, |step| {
        let node = match Node::running(layout) {
            Some(node) => node,
            None => start_node(layout, step)?,
        };
        control_plane(layout, &node, step)?;
        let kubectl = Kubectl::local(layout);
        agents(layout, paths, &node, &kubectl, step)?;
        step.milestone("waiting for the cluster's DNS");
        addons::wait_for_dns()
    })
}

fn start_node(layout: &Layout, step: &Step) -> anyhow::Result<Node> {
    step.milestone("starting the node");
    network::claim(layout)?;
    for folder in ["cni", "log", "containerd", "conf"] {
        fs::create_dir_all(layout.file(folder))
            .with_context(|| format!("cannot make {}", layout.file(folder).display()))?;
    }
    for (name, text) in config::files(&layout.dir, &nameservers()) {
        fs::write(layout.file(name), text)
            .with_context(|| format!("cannot write {name} in {}", layout.dir.display()))?;
    }
    host::prepare(layout)?;
    let node = Node::start(layout)?;
    network::connect(layout, &node)?;
    Ok(node)
}

/// Servers that this machine asks; systemd-resolved keeps the real ones in a file of its own.
fn nameservers() -> Vec<String> {
    ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"]
        .iter()
        .map(|file| config::reachable_nameservers(&fs::read_to_string(file).unwrap_or_default()))
        .find(|servers| !servers.is_empty())
        .unwrap_or_default()
}

fn control_plane(layout: &Layout, node: &Node, step: &Step) -> anyhow::Result<()> {
    Component::Containerd.ensure(node, layout)?;
    if !layout.kubeconfig().exists() {
        step.milestone("making certificates");
        certificates(layout)?;
    }
    Component::Etcd.ensure(node, layout)?;
    Component::ApiServer.ensure(node, layout)?;
    step.milestone("waiting for the API server");
    let kubectl = Kubectl::local(layout);
    wait::until(
        "the API server",
        LIMIT,
        "see `cargo xtask cluster logs kube-apiserver` and `logs etcd`",
        || {
            expect_running(node, &[Component::Etcd, Component::ApiServer])?;
            Ok(kubectl.output(["get", "--raw", "/readyz"]).is_ok().then_some(()))
        },
    )?;
    Component::ControllerManager.ensure(node, layout)?;
    Component::Scheduler.ensure(node, layout)?;
    Ok(())
}

/// Fails at once when a component has ended, rather than at the end of a wait.
fn expect_running(node: &Node, components: &[Component]) -> anyhow::Result<()> {
    let programs = node.programs();
    match components
        .iter()
        .find(|component| !programs.contains_key(component.name()))
    {
        Some(gone) => bail!("{} ended: see `cargo xtask cluster logs {}`", gone.name(), gone.name()),
        None => Ok(()),
    }
}

fn certificates(layout: &Layout) -> anyhow::Result<()> {
    let kubeadm = |phase: &str| {
        let mut kubeadm = command(layout.bin.join("kubeadm"), ["init", "phase", phase, "all", "--config"]);
        kubeadm.arg(layout.file("kubeadm.yaml"));
        plain_environment(&mut kubeadm);
        kubeadm
    };
    quiet(&mut kubeadm("certs"))?;
    quiet(kubeadm("kubeconfig").arg("--kubeconfig-dir").arg(layout.file("conf")))?;
    // Last: its presence says that the certificates are complete.
    fs::copy(layout.file("conf/super-admin.conf"), layout.kubeconfig())?;
    Ok(())
}

fn agents(layout: &Layout, paths: &Paths, node: &Node, kubectl: &Kubectl, step: &Step) -> anyhow::Result<()> {
    step.milestone("waiting for containerd");
    wait::until("containerd", LIMIT, "see `cargo xtask cluster logs containerd`", || {
        expect_running(node, &[Component::Containerd])?;
        Ok(containerd_answers(layout).then_some(()))
    })?;
    addons::images(layout, paths)?;
    // The API server reaches the kubelet (logs, exec, port-forward) as this group. The kubelet remembers a refusal: bind it first.
    let binding = "kubeadm:cluster-admins";
    if kubectl.output(["get", "clusterrolebinding", binding]).is_err() {
        kubectl.output([
            "create",
            "clusterrolebinding",
            binding,
            "--clusterrole",
            "cluster-admin",
            "--group",
            binding,
        ])?;
    }
    let before = kubectl
        .json(["get", "node", NODE])
        .map(|node| heartbeat(&node))
        .unwrap_or_default();
    let fresh = !node.programs().contains_key(Component::Kubelet.name());
    if fresh {
        gpus::withdraw(kubectl);
    }
    Component::Kubelet.ensure(node, layout)?;
    Component::KubeProxy.ensure(node, layout)?;
    addons::dns(layout, kubectl)?;
    step.milestone("waiting for the node to be Ready");
    wait::until(
        "the node to be Ready",
        LIMIT,
        "see `cargo xtask cluster logs kubelet`",
        || {
            expect_running(node, &[Component::Kubelet])?;
            let Ok(object) = kubectl.json(["get", "node", NODE]) else {
                return Ok(None);
            };
            // The object still says what the last kubelet wrote until the new one has looked around.
            Ok((ready(&object) && !(fresh && heartbeat(&object) == before)).then_some(()))
        },
    )?;
    gpus::offer(kubectl)
}

fn ready_condition(node: &Value) -> Option<&Value> {
    node["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == "Ready")
}

/// Whether the node object says Ready.
pub(crate) fn ready(node: &Value) -> bool {
    ready_condition(node).is_some_and(|condition| condition["status"] == "True")
}

fn heartbeat(node: &Value) -> String {
    ready_condition(node)
        .and_then(|condition| condition["lastHeartbeatTime"].as_str())
        .unwrap_or_default()
        .to_owned()
}
