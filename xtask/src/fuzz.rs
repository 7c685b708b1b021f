//! Fuzzing of what `coterie-locality` parses: builds `locality/fuzz` with coverage instrumentation on the pinned stable toolchain, writes
//! the seeds, runs the targets one after the other.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::{
    command::{command, output, quiet, shown},
    paths::Paths,
    progress::Report,
};

/// What the coverage-guided engine needs to see. No sanitizer: those ask for a nightly toolchain, and the code has no `unsafe`.
const INSTRUMENTATION: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// A run beyond these is a finding: memory in MiB, seconds for one input, bytes of the longest input.
const LIMITS: [&str; 3] = ["-rss_limit_mb=1024", "-timeout=10", "-max_len=8192"];

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Seconds for each target.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The target to run (table, sample, npy, npz, eldr); all of them unless given.
    target: Option<String>,
}

/// Builds and runs the targets; fails on the first that finds something and names the input.
pub(crate) fn run(args: &Args, paths: &Paths, report: &Report) -> anyhow::Result<()> {
    let crate_dir = paths.root.join("locality/fuzz");
    let targets = chosen(args.target.as_deref(), &crate_dir.join("fuzz_targets"))?;
    report.say("building the fuzz targets (a minute or two the first time)");
    let programs = build(&crate_dir, &paths.target.join("fuzz"))?;
    let seeds = paths.state.join("fuzz/seeds");
    quiet(command(programs.join("examples/seeds"), [&seeds]).current_dir(&paths.root))?;
    for target in targets {
        let corpus = paths.state.join("fuzz/corpus").join(&target);
        let findings = paths.state.join("fuzz/findings").join(&target);
        for dir in [&corpus, &findings] {
            std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        }
        report.say(&format!("{target}: {} s", args.seconds));
        let mut fuzzer = command(programs.join(&target), [&corpus, &seeds.join(&target)]);
        fuzzer
            .args(LIMITS)
            .arg(format!("-max_total_time={}", args.seconds))
            .arg(format!("-artifact_prefix={}/", findings.display()))
            .args(["-print_final_stats=1", "-verbosity=0"]);
        if shown(&mut fuzzer).is_err() {
            bail!(
                "{target}: the input that fails is in {}; run it alone: {} FILE",
                findings.display(),
                programs.join(&target).display()
            );
        }
    }
    Ok(())
}

/// The named target, or all, each checked against the files there are.
fn chosen(target: Option<&str>, folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        all.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    all.sort();
    match target {
        None => Ok(all),
        Some(name) if all.iter().any(|t| t == name) => Ok(vec![name.to_owned()]),
        Some(name) => bail!("no fuzz target '{name}'; there are: {}", all.join(", ")),
    }
}

/// Compiles targets and seeds, and returns the folder of the programs.
fn build(crate_dir: &Path, target_dir: &Path) -> anyhow::Result<PathBuf> {
    let version = output(command("rustc", ["-vV"]).current_dir(crate_dir))?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("rustc -vV names no host")?;
    // With a target named, cargo keeps the flags away from build scripts and macros.
    let args = ["build", "--release", "--bins", "--examples", "--target", host];
    quiet(
        command("cargo", args)
            .current_dir(crate_dir)
            .env("RUSTFLAGS", INSTRUMENTATION)
            .env("CARGO_TARGET_DIR", target_dir),
    )
    .context("fuzz targets need a C++ compiler besides Rust: apt-get install g++")?;
    Ok(target_dir.join(host).join("release"))
}

#[cfg(test)]
mod tests {
    use super::chosen;
    use crate::paths::Paths;

    #[test]
    fn targets_are_found_and_unknown_ones_refused() {
        let folder = Paths::find().unwrap().root.join("locality/fuzz/fuzz_targets");
        assert_eq!(
            chosen(None, &folder).unwrap(),
            ["eldr", "npy", "npz", "sample", "table"]
        );
        assert_eq!(chosen(Some("npz"), &folder).unwrap(), ["npz"]);
        let error = chosen(Some("png"), &folder).unwrap_err().to_string();
        assert!(error.contains("there are: eldr, npy"), "{error}");
    }
}
