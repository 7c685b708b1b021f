//! The tests on a real cluster.

use std::{fmt::Write as _, fs};

use super::{
    Run,
    code::{CLUSTER_FEATURE, cargo},
};
use crate::{
    cluster::{self, Kubectl},
    command::shown,
    images,
};

/// Brings cluster and images up, runs the tests, and leaves the machine as it was.
pub(super) fn run(run: &mut Run<'_>) -> anyhow::Result<()> {
    run.wait_for_tools()?;
    run.wait_for_images()?;
    let found = cluster::running(run.paths);
    let result = tests(run);
    if result.is_err() {
        evidence(run);
    }
    if found {
        run.report.say("the cluster was up before: it stays up");
    } else if run.args.keep_cluster {
        run.report
            .say("the cluster stays up: `cargo xtask cluster down` stops it");
    } else {
        cluster::down(run.paths, run.report)?;
    }
    result
}

fn tests(run: &Run<'_>) -> anyhow::Result<()> {
    let layout = cluster::up(run.paths, run.report)?;
    let made = images::make_all(run.paths, run.report)?;
    images::load(run.paths, &made, run.report)?;
    let mut cargo = cargo(
        run,
        &["test", "--workspace", "--test", "suite", "--features", CLUSTER_FEATURE],
    );
    cargo
        // One at a time: each test has a fleet of its own, and cores are few.
        .args(["--", "--test-threads", "1"])
        .args(&run.args.rest)
        .env("KUBECONFIG", layout.kubeconfig())
        .env("COTERIE_IMAGES", run.paths.state.join("images.json"))
        .env("COTERIE_XTASK", std::env::current_exe()?)
        .env("COTERIE_TOOLS", &layout.bin);
    shown(&mut cargo)
}

/// Keeps what the cluster says about a failure: it is gone with the cluster.
fn evidence(run: &Run<'_>) {
    let kubectl = Kubectl::local(&cluster::existing(run.paths));
    let mut text = String::new();
    for args in [
        &["get", "pods", "-A", "-o", "wide"][..],
        &[
            "get",
            "moedeployments,calibrationruns,centroidtables",
            "-A",
            "-o",
            "yaml",
        ],
        &["get", "events", "-A", "--sort-by", ".lastTimestamp"],
        &["describe", "pods", "-A"],
        &[
            "logs",
            "-A",
            "-l",
            "app.kubernetes.io/part-of=coterie",
            "--prefix",
            "--tail",
            "200",
            "--ignore-errors",
        ],
    ] {
        let said = kubectl.output(args).unwrap_or_else(|error| format!("{error:#}\n"));
        let _ = writeln!(text, "$ kubectl {}\n{said}", args.join(" "));
    }
    let Ok(log) = run.paths.log("e2e-failure") else { return };
    if fs::write(&log, text).is_ok() {
        run.report
            .say(&format!("what the cluster said at the end: {}", log.display()));
    }
}
