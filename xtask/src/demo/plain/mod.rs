//! The demo without Kubernetes: plain processes on this machine, all ended at the end.

mod processes;

use std::{path::PathBuf, time::Duration};

use anyhow::Context as _;
use processes::{Running, free_ports};

use super::{Args, FLEET, answers, fleet, http, outcome::Outcome, reach::Router, table, traffic};
use crate::{
    command::{command, output, quiet},
    images,
    paths::Paths,
    progress::Report,
    wait,
};

/// Workers of each kind.
const PREFILL: usize = 2;
const DECODE: usize = 4;
/// Geometry of the model.
const GEOMETRY: [&str; 6] = ["--layers", "6", "--experts", "64", "--top-k", "4"];
/// The binaries that it runs.
const BINARIES: [&str; 4] = [
    "coterie-engine-sim",
    "coterie-router",
    "coterie-calibrator",
    "coterie-load",
];

/// Runs the demo.
pub(super) fn run(args: &Args, paths: &Paths, report: &Report) -> anyhow::Result<()> {
    report.head("build");
    images::build_binaries(paths, &BINARIES)?;
    let dir = paths.state.join("demo");
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let demo = Demo {
        args,
        paths,
        report,
        dir,
    };

    report.head("engines");
    let (engines, _running) = demo.engines()?;
    let table = demo.calibrate(&engines)?;
    report.head("answers");
    let outcomes = ["LeastLoaded", "LocalityBand"].map(|policy| demo.measure(&engines, policy, &table));
    let [before, after] = outcomes;
    println!(
        "\n{}",
        table::side_by_side(("LeastLoaded", &before?), ("LocalityBand", &after?))
    );
    println!(
        "The logs are in {}. On a real cluster: cargo xtask demo",
        demo.dir.display()
    );
    Ok(())
}

struct Demo<'a> {
    args: &'a Args,
    paths: &'a Paths,
    report: &'a Report,
    dir: PathBuf,
}

/// Addresses of running engines.
struct Engines {
    prefill: Vec<String>,
    decode: Vec<String>,
}

impl Demo<'_> {
    /// The engines; they end when the second part is dropped.
    fn engines(&self) -> anyhow::Result<(Engines, Vec<Running>)> {
        self.report.step(
            &format!("start {PREFILL} prefill and {DECODE} decode workers"),
            |step| {
                let mut running = Vec::new();
                let mut engines = Engines {
                    prefill: Vec::new(),
                    decode: Vec::new(),
                };
                for index in 0..PREFILL + DECODE {
                    let [port, side] = free_ports()?;
                    let address = format!("127.0.0.1:{port}");
                    let prefill = index < PREFILL;
                    let name = if prefill {
                        format!("prefill-{index}")
                    } else {
                        format!("decode-{}", index - PREFILL)
                    };
                    running.push(self.engine(&name, port, side, prefill)?);
                    if prefill {
                        &mut engines.prefill
                    } else {
                        &mut engines.decode
                    }
                    .push(address);
                }
                for address in engines.prefill.iter().chain(&engines.decode) {
                    step.note(address.as_str());
                    self.healthy(address, "/health")?;
                }
                Ok((engines, running))
            },
        )
    }

    fn engine(&self, name: &str, port: u16, side: u16, prefill: bool) -> anyhow::Result<Running> {
        let role = if prefill { "kv_producer" } else { "kv_consumer" };
        let mut engine = command(images::binary(self.paths, "coterie-engine-sim")?, ["serve"]);
        engine
            .arg(self.paths.root.join("engine-sim/models/tiny-moe"))
            .args([
                "--served-model-name",
                FLEET,
                "--host",
                "127.0.0.1",
                "--port",
                &port.to_string(),
            ])
            .args([
                "--kv-transfer-config",
                &format!(r#"{{"kv_connector":"NixlConnector","kv_role":"{role}"}}"#),
            ])
            .args(prefill.then_some("--enable-return-routed-experts"))
            .env("SIM_RECORDING", self.recording())
            .env("VLLM_NIXL_SIDE_CHANNEL_HOST", "127.0.0.1")
            .env("VLLM_NIXL_SIDE_CHANNEL_PORT", side.to_string());
        Running::start(&mut engine, name, &self.dir)
    }

    /// Collects samples from the prefill workers and fits a table to a file.
    fn calibrate(&self, engines: &Engines) -> anyhow::Result<PathBuf> {
        let (prompts, samples, table) = (
            self.dir.join("prompts.jsonl"),
            self.dir.join("samples"),
            self.dir.join("table"),
        );
        std::fs::write(&prompts, fleet::prompts(self.paths)?)?;
        let calibrator = images::binary(self.paths, "coterie-calibrator")?;
        self.report.step("collect samples from the prefill workers", |_| {
            let mut collect = command(
                &calibrator,
                ["collect", "--model", FLEET, "--probe", &engines.prefill.join(",")],
            );
            quiet(
                collect
                    .args(GEOMETRY)
                    .arg("--prompts")
                    .arg(&prompts)
                    .arg("--out")
                    .arg(&samples),
            )
        })?;
        let said = self.report.step(&format!("fit a table of {DECODE} clusters"), |_| {
            let mut fit = command(&calibrator, ["fit", "--clusters", &DECODE.to_string(), "--out"]);
            output(fit.arg(&table).arg(&samples))
        })?;
        self.report.say(said.trim_end());
        Ok(table)
    }

    /// One router, a few answers, one load.
    fn measure(&self, engines: &Engines, policy: &str, table: &std::path::Path) -> anyhow::Result<Outcome> {
        let [port, admin] = free_ports()?;
        let [metrics, _] = free_ports()?;
        let decode: Vec<_> = engines
            .decode
            .iter()
            .enumerate()
            .map(|(index, address)| format!("decode-{index}={address}"))
            .collect();
        let mut router = command(
            images::binary(self.paths, "coterie-router")?,
            ["--model", FLEET, "--policy", policy],
        );
        router
            .args(GEOMETRY)
            .args([
                "--listen",
                &format!("127.0.0.1:{port}"),
                "--admin-listen",
                &format!("127.0.0.1:{admin}"),
            ])
            .args(["--metrics-address", &format!("127.0.0.1:{metrics}")])
            .args(["--prefill", &engines.prefill.join(","), "--decode", &decode.join(",")])
            .arg("--table")
            .arg(table);
        let _router = Running::start(&mut router, "router", &self.dir)?;
        self.healthy(&format!("127.0.0.1:{metrics}"), "/readyz")?;
        let router = Router::at(format!("127.0.0.1:{port}"));
        if policy == "LeastLoaded" {
            answers::show(&router, self.report)?;
        }
        let workers: Vec<_> = engines
            .decode
            .iter()
            .map(|address| format!("http://{address}"))
            .collect();
        let what = format!(
            "{policy}: {} s of {} requests at a time",
            self.args.load_seconds(),
            self.args.concurrency
        );
        let said = self.report.step(&what, |_| {
            let mut load = command(
                images::binary(self.paths, "coterie-load")?,
                ["--target", &format!("http://{}", router.address)],
            );
            load.args(super::load::flags(
                traffic::BEFORE,
                self.args.load_seconds(),
                self.args.concurrency,
                1,
                &workers,
            ));
            output(load.args(traffic::files(self.paths)))
        })?;
        Outcome::of_output(&said)
    }

    fn healthy(&self, address: &str, path: &str) -> anyhow::Result<()> {
        let hint = format!("see the logs in {}", self.dir.display());
        wait::until(
            &format!("http://{address}{path}"),
            Duration::from_secs(30),
            &hint,
            || Ok(http::healthy(address, path).then_some(())),
        )
    }

    fn recording(&self) -> PathBuf {
        self.paths.root.join("engine-sim/recordings/tiny-moe.npz")
    }
}
