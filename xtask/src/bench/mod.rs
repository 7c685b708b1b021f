//! Benchmarks beside peers, and the tables of `docs/performance.md`.

mod page;
mod python;

use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use crate::{
    command::{command, output, quiet, shown},
    images::clear_cargo_run,
    paths::Paths,
    progress::Report,
};

/// What to measure.
#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// The mathematics: route decision, counts, assignment, K-means, predictors, fit. Beside numpy, SciPy, scikit-learn, k-means-constrained.
    Locality(Args),
}

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Few sizes and repetitions: shows that everything runs.
    #[arg(long)]
    quick: bool,
    /// These benchmarks only: route, counts, assignment, kmeans, predictor, fit, fit-large.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Write the results into docs/performance.md.
    #[arg(long, conflicts_with = "quick")]
    update_docs: bool,
}

/// Runs the command.
pub(crate) fn run(action: &Action, paths: &Paths, report: &Report) -> anyhow::Result<()> {
    let Action::Locality(args) = action;
    let scripts = paths.root.join("e2e/bench/peers");
    let python = report.step("Python with the peers", |_| {
        python::ensure(paths, &scripts.join("requirements.txt"))
    })?;
    report.step("release build of coterie-bench", |_| {
        let mut cargo = command("cargo", ["build", "--release", "--package", "coterie-bench"]);
        clear_cargo_run(cargo.current_dir(&paths.root));
        quiet(&mut cargo)
    })?;
    let folder = paths.state.join("bench");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let json = folder.join("locality.json");
    let mut bench = command(paths.target.join("release/coterie-bench"), ["run", "--python"]);
    bench
        .arg(&python)
        .arg("--scripts")
        .arg(&scripts)
        .arg("--json")
        .arg(&json);
    if args.quick {
        bench.arg("--quick");
    }
    if !args.only.is_empty() {
        bench.arg("--only").arg(args.only.join(","));
    }
    shown(&mut bench)?;
    report.say(&format!("results: {}", json.display()));
    if args.update_docs {
        update(paths, &json, report)?;
    }
    Ok(())
}

fn update(paths: &Paths, json: &Path, report: &Report) -> anyhow::Result<()> {
    let mut results: Value = serde_json::from_slice(&std::fs::read(json)?)?;
    let ask = |program: &str, args: &[&str]| {
        let mut command = command(program, args);
        clear_cargo_run(command.current_dir(&paths.root));
        output(&mut command).map(|text| text.trim().to_owned())
    };
    results["environment"]["commit"] = ask("git", &["describe", "--always", "--dirty"])?.into();
    results["environment"]["rust"] = ask("rustc", &["--version"])?.into();
    let path = paths.root.join("docs/performance.md");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    std::fs::write(&path, page::filled(&text, &results)?)?;
    report.say("docs/performance.md has the new tables; read its analysis against them");
    Ok(())
}
