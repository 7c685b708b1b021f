//! Building the commands with Go, once.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::Path,
    process::Stdio,
    time::Instant,
};

use anyhow::{Context as _, bail};

use super::{MODULES, Module};
use crate::{
    command::{command, output, tail},
    paths::Paths,
    progress::{Report, Step, seconds},
};

/// Builds all modules into `bin`, which appears only when everything in it is complete.
pub(crate) fn all(paths: &Paths, bin: &Path, report: &Report) -> anyhow::Result<()> {
    let dir = bin.parent().context("no cache folder")?;
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    // Two checkouts that build at once would do the same work twice: the second waits for the first.
    let lock = File::create(dir.join("lock"))?;
    if lock.try_lock().is_err() {
        report.step("waiting for another build of the cluster's commands", |_| {
            Ok(lock.lock()?)
        })?;
    }
    if bin.is_dir() {
        return Ok(());
    }
    let partial = bin.with_extension("partial");
    std::fs::create_dir_all(&partial)?;
    report.say("building the cluster's commands with Go: about 11 minutes on two cores the first time, half a minute when Go's cache has the packages");
    for module in &MODULES {
        let what = format!("build {}", module.folder);
        report.step(&what, |step| build(paths, module, &partial, step))?;
    }
    std::fs::rename(&partial, bin)?;
    Ok(())
}

/// Builds one module; Go names each package as it gets to compile it, which is what the progress counts.
fn build(paths: &Paths, module: &Module, out: &Path, step: &Step) -> anyhow::Result<()> {
    let folder = paths.root.join("xtask/tools").join(module.folder);
    let go = |args: &[&str]| {
        let mut go = command("go", args);
        go.current_dir(&folder).env("CGO_ENABLED", "0").stdin(Stdio::null());
        go
    };
    step.note("reading the module");
    let total = output(go(&["list", "-deps"]).args(module.packages))?.lines().count();
    let target = module.name.map_or_else(
        || format!("{}/", out.display()),
        |name| out.join(name).display().to_string(),
    );
    let mut child = go(&["build", "-v", "-trimpath", "-ldflags", module.ldflags, "-o", &target])
        .args(module.packages)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start go")?;
    let start = Instant::now();
    let (mut compiled, mut rest) = (0, String::new());
    for line in BufReader::new(child.stderr.take().context("no output of go")?).lines() {
        let line = line?;
        if line.contains(' ') || line.starts_with('#') || line.contains(".go:") {
            rest.push_str(&line);
            rest.push('\n');
            continue;
        }
        compiled += 1;
        let left = remaining(start.elapsed().as_secs_f64(), compiled, total);
        let text = format!("{compiled} packages compiled, at most {total}{left}");
        if compiled % 200 == 0 {
            step.milestone(text);
        } else {
            step.note(text);
        }
    }
    if !child.wait()?.success() {
        bail!("go build of {} failed\n{}", module.folder, tail(&rest, 20));
    }
    Ok(())
}

/// Time left at the rate so far. An upper bound: packages in Go's cache are not compiled again, and nobody knows how many these are.
fn remaining(elapsed: f64, compiled: usize, total: usize) -> String {
    if elapsed < 5.0 || compiled == 0 || compiled >= total {
        return String::new();
    }
    let left = elapsed / compiled as f64 * (total - compiled) as f64;
    format!(", at most {} left", seconds(std::time::Duration::from_secs_f64(left)))
}

#[cfg(test)]
mod tests {
    use super::remaining;

    #[test]
    fn says_nothing_before_it_knows() {
        assert_eq!(remaining(1.0, 10, 100), "");
        assert_eq!(remaining(10.0, 100, 100), "");
        assert_eq!(remaining(10.0, 10, 100), ", at most 90 s left");
    }
}
