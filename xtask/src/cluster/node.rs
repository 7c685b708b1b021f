//! The node: one process tree in namespaces of its own. The end of its first process is the end of everything in it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};

use super::layout::{Layout, NODE, NODE_FOLDERS};
use crate::{
    command::{command, tail},
    processes::{Process, all},
    wait,
};

/// First process of the node. `unshare` has made the mounts private. It mounts what the node's programs expect at fixed places, then only adopts and reaps.
/// Arguments: name of the node, file that says it is ready, folders.
const INIT: &str = r#"set -e
name=$1 ready=$2; shift 2
for folder; do mount -n -t tmpfs -o mode=755 coterie "$folder"; done
mount -n -t proc proc /proc
hostname "$name"
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
: > "$ready"
set +e
while :; do sleep 3600 & wait; done"#;

/// A running node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    process: Process,
    dir: std::path::PathBuf,
}

impl Node {
    /// The node of this state folder, if it runs.
    pub(crate) fn running(layout: &Layout) -> Option<Self> {
        let process = Process::recorded(&pid_file(&layout.dir))?;
        Some(Self {
            process,
            dir: layout.dir.clone(),
        })
    }

    /// Starts a node without a network.
    pub(crate) fn start(layout: &Layout) -> anyhow::Result<Self> {
        let ready = layout.file("ready");
        let _ = fs::remove_file(&ready);
        let log = File::create(layout.log("node"))?;
        let mut holder = command(
            "setsid",
            [
                "unshare",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount",
                "--net",
                "--uts",
                "--ipc",
            ],
        )
        .args(["bash", "-c", INIT, "coterie-node", NODE])
        .arg(&ready)
        .args(NODE_FOLDERS)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .current_dir("/")
        .spawn()
        .context("cannot start the node (unshare and setsid are in the package util-linux)")?;
        wait::until(
            "the node's namespaces",
            Duration::from_secs(20),
            "see `cargo xtask cluster logs node`",
            || {
                if holder.try_wait()?.is_some() {
                    bail!(
                        "the node ended at once\n{}",
                        tail(&fs::read_to_string(layout.log("node"))?, 10)
                    );
                }
                Ok(ready.exists().then_some(()))
            },
        )?;
        let process = Process::first_child(holder.id()).context("the node's first process is not there")?;
        process.record(&pid_file(&layout.dir))?;
        Ok(Self {
            process,
            dir: layout.dir.clone(),
        })
    }

    /// Id of the first process, as this machine sees it.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid
    }

    /// A command that runs inside the node, in the state folder.
    pub(crate) fn enter(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut enter = command(
            "nsenter",
            [
                "-t",
                &self.process.pid.to_string(),
                "-a",
                "sh",
                "-c",
                r#"cd "$0" && exec "$@""#,
            ],
        );
        enter.arg(&self.dir).arg(program);
        plain_environment(&mut enter);
        enter
    }

    /// Starts a command that goes on inside the node, its output in a log.
    pub(crate) fn spawn(&self, log: &Path, program: &Path, args: &[String]) -> anyhow::Result<()> {
        let script = r#"log=$1; shift; setsid "$@" </dev/null >"$log" 2>&1 &"#;
        if log.exists() {
            fs::rename(log, log.with_extension("log.1"))?;
        }
        let mut start = self.enter("bash");
        start.args(["-c", script, "start"]).arg(log).arg(program).args(args);
        crate::command::quiet(&mut start)
    }

    /// Programs that run inside the node: file name and process id.
    pub(crate) fn programs(&self) -> BTreeMap<String, u32> {
        let namespace = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let Some(own) = namespace(self.process.pid) else {
            return BTreeMap::new();
        };
        all()
            .filter(|pid| namespace(*pid).as_ref() == Some(&own))
            .filter_map(|pid| {
                let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
                let name = program.file_name()?.to_string_lossy().into_owned();
                Some((name.trim_end_matches(" (deleted)").to_owned(), pid))
            })
            .collect()
    }

    /// Ends everything in the node at once and waits until it is gone.
    pub(crate) fn kill(self) -> anyhow::Result<()> {
        let kill = crate::command::quiet(&mut command("kill", ["-9", &self.process.pid.to_string()]));
        wait::until(
            "the end of the node",
            Duration::from_secs(30),
            "a process of it cannot be killed",
            || Ok((!self.process.alive()).then_some(())),
        )
        .with_context(|| kill.err().map_or_else(String::new, |error| error.to_string()))?;
        let _ = fs::remove_file(pid_file(&self.dir));
        Ok(())
    }
}

/// File that records the node's first process.
pub(crate) fn pid_file(dir: &Path) -> std::path::PathBuf {
    dir.join("node.pid")
}

/// The cluster's addresses must not go through a web proxy, and tools must be found where root's PATH is short.
pub(crate) fn plain_environment(command: &mut Command) {
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ] {
        command.env_remove(name);
    }
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"));
}
