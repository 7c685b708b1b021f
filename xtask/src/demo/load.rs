//! A measured load: the load generator as a Job beside the fleet, its last line of output as the result.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::{Args, FLEET, NAMESPACE, fleet, outcome::Outcome, target::Target, traffic};
use crate::{progress::Report, wait};

/// A load generator's Job.
pub(super) struct Job<'a> {
    pub(super) name: &'a str,
    pub(super) domains: &'a str,
    pub(super) seconds: u32,
    pub(super) concurrency: u32,
    pub(super) seed: u32,
}

/// Sets a policy, sends the load, and returns what was measured.
pub(super) fn measure(target: &Target, args: &Args, policy: &str, report: &Report) -> anyhow::Result<Outcome> {
    report.step(
        &format!(
            "{policy}: {} s of {} requests at a time",
            args.load_seconds(),
            args.concurrency
        ),
        |step| {
            step.note("the routers take the policy");
            fleet::set_policy(target, policy)?;
            let name = format!("load-{}", policy.to_ascii_lowercase());
            let job = Job {
                name: &name,
                domains: traffic::BEFORE,
                seconds: args.load_seconds(),
                concurrency: args.concurrency,
                // The same requests in the same order for both policies.
                seed: 1,
            };
            start(target, &job)?;
            let began = Instant::now();
            let limit = Duration::from_secs(u64::from(args.load_seconds()) + 120);
            wait::until(
                "the load to end",
                limit,
                &format!("see `kubectl -n {NAMESPACE} logs job/{name}`"),
                || {
                    step.note(format!("{} s", began.elapsed().as_secs()));
                    ended(target, &name)
                },
            )?;
            let text = target
                .kubectl
                .output(["-n", NAMESPACE, "logs", &format!("job/{name}"), "--tail", "1"])?;
            Outcome::of_output(&text)
        },
    )
}

/// Starts a load generator, in place of an older one of the same name.
pub(super) fn start(target: &Target, job: &Job<'_>) -> anyhow::Result<()> {
    stop(target, job.name)?;
    target
        .kubectl
        .apply(&manifest(job, target.image("engine-sim")?, &decode_workers(target)?).to_string())?;
    Ok(())
}

/// Removes a load generator.
pub(super) fn stop(target: &Target, name: &str) -> anyhow::Result<()> {
    target
        .kubectl
        .output([
            "-n",
            NAMESPACE,
            "delete",
            "job",
            name,
            "--ignore-not-found",
            "--cascade",
            "foreground",
            "--grace-period",
            "1",
        ])
        .map(drop)
}

/// Whether a Job is over; an error if it failed.
pub(super) fn ended(target: &Target, name: &str) -> anyhow::Result<Option<()>> {
    let job = target.kubectl.json(["-n", NAMESPACE, "get", "job", name])?;
    let is = |kind: &str| fleet::condition(&job, kind).is_some_and(|condition| condition["status"] == "True");
    if is("Failed") {
        let said = target
            .kubectl
            .output(["-n", NAMESPACE, "logs", &format!("job/{name}"), "--tail", "10"])
            .unwrap_or_default();
        bail!("the load generator failed\n{said}");
    }
    Ok(is("Complete").then_some(()))
}

/// Addresses of the decode workers, which the load generator asks for what they measured.
fn decode_workers(target: &Target) -> anyhow::Result<Vec<String>> {
    let selector = format!("coterie.dev/deployment={FLEET},coterie.dev/role=decode");
    let pods = target.kubectl.json(["-n", NAMESPACE, "get", "pods", "-l", &selector])?;
    let items = pods["items"].as_array().context("kubectl lists no pods")?;
    Ok(items
        .iter()
        .filter_map(|pod| Some(format!("http://{}:8000", pod["status"]["podIP"].as_str()?)))
        .collect())
}

/// Flags of the load generator, but for where it sends and its recording.
pub(super) fn flags(domains: &str, seconds: u32, concurrency: u32, seed: u32, workers: &[String]) -> Vec<String> {
    let (duration, concurrency, seed) = (format!("{seconds}s"), concurrency.to_string(), seed.to_string());
    let workers = workers.join(",");
    let flags = [
        ["--model", FLEET],
        ["--domains", domains],
        // What the fleet was not calibrated on: see `traffic::CALIBRATION`.
        ["--part", "odd"],
        ["--concurrency", &concurrency],
        ["--duration", &duration],
        ["--warmup-requests", &concurrency],
        ["--seed", &seed],
        ["--max-tokens", "128"],
        ["--workers", &workers],
    ];
    flags
        .as_flattened()
        .iter()
        .chain(&["--stream"])
        .map(|flag| (*flag).to_owned())
        .collect()
}

fn manifest(job: &Job<'_>, image: &str, workers: &[String]) -> Value {
    let target = format!("http://{FLEET}-router");
    let mut args = ["--target", &target, "--recording", "/models/recording.npz"]
        .map(str::to_owned)
        .to_vec();
    args.extend(flags(job.domains, job.seconds, job.concurrency, job.seed, workers));
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job.name, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/name": "coterie-load"}},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": {"app.kubernetes.io/name": "coterie-load"}},
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": false,
                    "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [{
                        "name": "load",
                        "image": image,
                        "command": ["/coterie-load"],
                        "args": args,
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
        },
    })
}
