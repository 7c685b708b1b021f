//! kubectl against one cluster.

use std::{ffi::OsStr, path::PathBuf, process::Command};

use anyhow::Context as _;
use serde_json::Value;

use super::{layout::Layout, node::plain_environment};
use crate::command::{command, output, with_input};

/// How kubectl (and helm) reach a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Kubectl {
    program: PathBuf,
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
}

impl Kubectl {
    /// For the local cluster.
    pub(crate) fn local(layout: &Layout) -> Self {
        Self {
            program: layout.bin.join("kubectl"),
            kubeconfig: Some(layout.kubeconfig()),
            context: None,
        }
    }

    /// For a context of the person's own configuration.
    pub(crate) fn context(bin: &std::path::Path, context: &str) -> Self {
        Self {
            program: bin.join("kubectl"),
            kubeconfig: None,
            context: Some(context.to_owned()),
        }
    }

    /// Points helm at the same cluster.
    pub(crate) fn connect(&self, helm: &mut Command) {
        if let Some(file) = &self.kubeconfig {
            helm.arg("--kubeconfig").arg(file);
            plain_environment(helm);
        }
        if let Some(context) = &self.context {
            helm.args(["--kube-context", context]);
        }
    }

    /// A command with the cluster's flags.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut kubectl = command(&self.program, [""; 0]);
        if let Some(file) = &self.kubeconfig {
            kubectl.arg("--kubeconfig").arg(file);
            plain_environment(&mut kubectl);
        }
        if let Some(context) = &self.context {
            kubectl.args(["--context", context]);
        }
        kubectl.args(args);
        kubectl
    }

    /// Runs it and returns what it prints.
    pub(crate) fn output<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> anyhow::Result<String> {
        output(&mut self.command(args))
    }

    /// Runs it with `-o json`.
    pub(crate) fn json<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> anyhow::Result<Value> {
        let text = output(self.command(args).args(["-o", "json"]))?;
        serde_json::from_str(&text).context("kubectl did not print JSON")
    }

    /// Applies YAML or JSON of objects that name no namespace.
    pub(crate) fn apply_in(&self, namespace: &str, manifest: &str) -> anyhow::Result<String> {
        let flags = [
            "-n",
            namespace,
            "apply",
            "--server-side",
            "--force-conflicts",
            "-f",
            "-",
        ];
        with_input(&mut self.command(flags), manifest)
    }

    /// Applies YAML or JSON.
    pub(crate) fn apply(&self, manifest: &str) -> anyhow::Result<String> {
        with_input(
            &mut self.command(["apply", "--server-side", "--force-conflicts", "-f", "-"]),
            manifest,
        )
    }
}
