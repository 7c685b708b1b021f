//! The operator installed, the fleet declared, and the wait until it serves and is calibrated.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{FLEET, NAMESPACE, target::Target, traffic};
use crate::{
    command::{command, output, quiet},
    images,
    paths::Paths,
    progress::{Report, Step},
    wait,
};

/// Namespace and release of the operator.
pub(super) const SYSTEM: &str = "coterie-system";

/// What the example calls the engine's image.
const EXAMPLE_IMAGE: &str = "localhost/coterie-engine-sim:dev";

/// Installs or upgrades the chart.
pub(super) fn install(target: &Target, paths: &Paths, report: &Report) -> anyhow::Result<()> {
    report.step("install the operator with Helm", |_| {
        let mut helm = command(&target.helm, ["upgrade", "--install", "coterie"]);
        helm.arg(paths.root.join("charts/coterie")).args([
            "--namespace",
            SYSTEM,
            "--create-namespace",
            "--wait",
            "--timeout",
            "3m",
        ]);
        for (value, image) in [
            ("operator", "operator"),
            ("router", "router"),
            ("calibrator", "calibrator"),
        ] {
            helm.args(["--set-string", &format!("images.{value}={}", target.image(image)?)]);
        }
        target.kubectl.connect(&mut helm);
        quiet(&mut helm)
    })
}

/// Applies the example with its calibration prompts.
pub(super) fn declare(target: &Target, paths: &Paths, report: &Report) -> anyhow::Result<()> {
    report.step("declare the fleet of examples/tiny-moe.yaml", |_| {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        target.kubectl.apply(&namespace.to_string())?;
        let prompts = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": format!("{FLEET}-prompts"), "namespace": NAMESPACE},
            "data": {"prompts.jsonl": prompts(paths)?},
        });
        target.kubectl.apply(&prompts.to_string())?;
        let file = paths.root.join("examples/tiny-moe.yaml");
        let example = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let example = example.replace(EXAMPLE_IMAGE, target.image("engine-sim")?);
        target.kubectl.apply_in(NAMESPACE, &example).map(drop)
    })
}

/// Prompts of the calibration, as JSON lines: of the first mix of domains, from the recording.
pub(super) fn prompts(paths: &Paths) -> anyhow::Result<String> {
    let flags = ["prompts", "--model", FLEET, "--domains", traffic::BEFORE];
    let mut prompts = command(images::binary(paths, "coterie-load")?, flags);
    output(prompts.args(traffic::CALIBRATION).args(traffic::files(paths)))
}

/// Waits until the fleet serves and its table is in use, telling what is missing meanwhile.
pub(super) fn wait(target: &Target, report: &Report) -> anyhow::Result<()> {
    report.step("wait for Ready", |step| wait_for(target, "Ready", 180, step))?;
    if get(target)?["status"]["table"]["name"].is_string() {
        // An earlier demo ended with a table for the other mix.
        calibrate_again(target, report)?;
    }
    report.step("wait for Calibrated", |step| wait_for(target, "Calibrated", 300, step))?;
    report.step("wait for TablePropagated", |step| {
        wait_for(target, "TablePropagated", 60, step)
    })
}

/// Asks for a calibration run as a person would: by a new request id.
fn calibrate_again(target: &Target, report: &Report) -> anyhow::Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let id = format!("demo-{now}");
    report.step(&format!("calibrate again: spec.calibration.requestID {id}"), |step| {
        patch(target, &json!({"spec": {"calibration": {"requestID": id}}}))?;
        let hint = format!("see `kubectl -n {NAMESPACE} get calibrationruns`");
        wait::until("the calibration run", Duration::from_secs(300), &hint, || {
            if get(target)?["status"]["calibration"]["observedRequestID"] != id.as_str() {
                return Ok(None);
            }
            let runs = runs(target)?;
            let Some(run) = newest_run(&runs, "Manual") else {
                return Ok(None);
            };
            let phase = text(&run["status"]["phase"]);
            step.note(format!("{} {phase}", text(&run["metadata"]["name"])));
            anyhow::ensure!(
                phase != "Failed",
                "the calibration run failed: {}",
                text(&run["status"]["message"])
            );
            Ok((phase == "Succeeded").then_some(()))
        })
    })
}

/// All calibration runs of the namespace.
pub(super) fn runs(target: &Target) -> anyhow::Result<Value> {
    target.kubectl.json(["-n", NAMESPACE, "get", "calibrationruns"])
}

/// The fleet's newest run of a reason.
pub(super) fn newest_run<'a>(runs: &'a Value, reason: &str) -> Option<&'a Value> {
    runs["items"]
        .as_array()?
        .iter()
        .filter(|run| run["spec"]["reason"] == reason && run["spec"]["deployment"] == FLEET)
        .max_by_key(|run| text(&run["metadata"]["creationTimestamp"]))
}

fn patch(target: &Target, patch: &Value) -> anyhow::Result<()> {
    let patch = patch.to_string();
    target
        .kubectl
        .output([
            "-n",
            NAMESPACE,
            "patch",
            "moedeployment",
            FLEET,
            "--type",
            "merge",
            "-p",
            &patch,
        ])
        .map(drop)
}

fn wait_for(target: &Target, kind: &str, seconds: u64, step: &Step) -> anyhow::Result<()> {
    let hint = format!("see `kubectl -n {NAMESPACE} describe moe {FLEET}`");
    wait::until(kind, Duration::from_secs(seconds), &hint, || {
        let fleet = get(target)?;
        let condition = condition(&fleet, kind);
        step.note(condition.map_or_else(
            || "not seen by the operator yet".to_owned(),
            |found| text(&found["message"]),
        ));
        Ok(condition
            .filter(|found| found["status"] == "True" && current(&fleet))
            .map(drop))
    })
}

/// The fleet's object.
pub(super) fn get(target: &Target) -> anyhow::Result<Value> {
    target.kubectl.json(["-n", NAMESPACE, "get", "moedeployment", FLEET])
}

/// Sets the policy and waits until all routers route by it.
pub(super) fn set_policy(target: &Target, policy: &str) -> anyhow::Result<()> {
    patch(target, &json!({"spec": {"routing": {"policy": policy}}}))?;
    let hint = format!("see `kubectl -n {NAMESPACE} describe moe {FLEET}`");
    wait::until("the routers to take the policy", Duration::from_secs(60), &hint, || {
        let fleet = get(target)?;
        let router = &fleet["status"]["router"];
        let acknowledged =
            router["acknowledgedGeneration"].is_u64() && router["acknowledgedGeneration"] == router["generation"];
        Ok((current(&fleet) && acknowledged).then_some(()))
    })
}

/// Whether the status speaks of the spec as it is now.
fn current(fleet: &Value) -> bool {
    fleet["status"]["observedGeneration"] == fleet["metadata"]["generation"]
}

/// A condition of an object.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// A string of an object, or nothing.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
