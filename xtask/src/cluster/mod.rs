//! A one-node Kubernetes on this machine: every process in namespaces of its own, all state in one git-ignored folder.

mod addons;
mod components;
mod config;
mod down;
mod gpus;
mod host;
mod kubectl;
mod layout;
mod load;
mod logs;
mod network;
mod node;
mod status;
mod up;

pub(crate) use kubectl::Kubectl;
pub(crate) use layout::Layout;
pub(crate) use load::load;

use clap::Subcommand;

use crate::{doctor, paths::Paths, progress::Report, tools};

/// What to do with the local cluster.
#[derive(Subcommand)]
pub(crate) enum Action {
    /// Start it, or check that it runs and start what is missing. Needs root.
    Up {
        /// Install missing Debian packages without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Stop it and forget its state.
    Down {
        /// Keep the state: the next `up` brings back everything that was in it.
        #[arg(long)]
        keep: bool,
    },
    /// End the node without notice, as a power cut would; `up` brings it back.
    Kill,
    /// Show whether it runs, what is missing and how to reach it.
    Status,
    /// Show the log of a component, or the list of components.
    Logs {
        /// etcd, kube-apiserver, kube-controller-manager, kube-scheduler, containerd, kubelet, kube-proxy or node.
        component: Option<String>,
        /// Go on as the log grows.
        #[arg(short, long)]
        follow: bool,
    },
}

/// Runs one action.
pub(crate) fn run(action: Action, paths: &Paths, report: &Report) -> anyhow::Result<()> {
    match action {
        Action::Up { yes } => {
            doctor::require(doctor::Need::Cluster, yes, report)?;
            let bin = tools::ensure(paths, report)?;
            let layout = Layout::new(paths, &bin);
            up::run(&layout, paths, report)?;
            println!("export KUBECONFIG={}", layout.kubeconfig().display());
            println!("export PATH={}:$PATH", paths.state.join("bin").display());
            Ok(())
        }
        Action::Down { keep } => down::run(&existing(paths), keep, report),
        Action::Kill => down::kill(&existing(paths), report),
        Action::Status => status::run(&existing(paths)),
        Action::Logs { component, follow } => logs::run(&existing(paths), component.as_deref(), follow),
    }
}

/// Starts the cluster for another command and says how to reach it.
pub(crate) fn up(paths: &Paths, report: &Report) -> anyhow::Result<Layout> {
    let bin = tools::ensure(paths, report)?;
    let layout = Layout::new(paths, &bin);
    up::run(&layout, paths, report)?;
    Ok(layout)
}

/// Whether this checkout's cluster runs.
pub(crate) fn running(paths: &Paths) -> bool {
    node::Node::running(&existing(paths)).is_some()
}

/// Stops the cluster for another command.
pub(crate) fn down(paths: &Paths, report: &Report) -> anyhow::Result<()> {
    down::run(&existing(paths), false, report)
}

/// The layout without building anything: what runs was started with the commands that `.coterie/bin` points at.
pub(crate) fn existing(paths: &Paths) -> Layout {
    let bin = std::fs::read_link(paths.state.join("bin")).unwrap_or_else(|_| paths.state.join("bin"));
    Layout::new(paths, &bin)
}
