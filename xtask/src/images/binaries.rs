//! The binaries that go into images: linked statically, since there is nothing else in an image.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

use crate::{
    command::{command, output, shown, tail},
    paths::Paths,
};

/// Where cargo's output goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output<'a> {
    /// To the person, as it comes.
    Shown,
    /// To a file, at low priority: other work is in the foreground.
    Log(&'a Path),
}

/// Builds binaries. The target folder is their own: cargo works in one at a time, and other flags would rebuild everything there.
pub(crate) fn build(paths: &Paths, binaries: &[&str], out: Output<'_>) -> anyhow::Result<()> {
    let mut cargo = match out {
        Output::Shown => command("cargo", ["build"]),
        Output::Log(_) => command("nice", ["-n", "5", "cargo", "build"]),
    };
    let target = target(paths);
    // `--workspace`, so that features are those of every other build.
    cargo
        .args(["--workspace", "--locked", "--profile", "images", "--target", &host(paths)?])
        .args(binaries.iter().flat_map(|binary| ["--bin", binary]))
        .current_dir(&paths.root)
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", "-C target-feature=+crt-static");
    clear_cargo_run(&mut cargo);
    match out {
        Output::Shown => shown(&mut cargo),
        Output::Log(log) => {
            let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
            let status = cargo.stdin(std::process::Stdio::null()).stdout(file.try_clone()?).stderr(file).status()?;
            if !status.success() {
                let text = std::fs::read_to_string(log).unwrap_or_default();
                bail!("the images' binaries do not build (all of it: {})\n{}", log.display(), tail(&text, 25));
            }
            Ok(())
        }
    }
}

/// `cargo run` hands its own variables down; a nested cargo takes some for settings and rebuilds because of others.
pub(crate) fn clear_cargo_run(cargo: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO" {
            cargo.env_remove(&*name);
        }
    }
}

/// A built binary.
pub(crate) fn path(paths: &Paths, binary: &str) -> anyhow::Result<PathBuf> {
    Ok(target(paths).join(host(paths)?).join("images").join(binary))
}

fn target(paths: &Paths) -> PathBuf {
    paths.target.join("images")
}

/// This machine's target triple.
fn host(paths: &Paths) -> anyhow::Result<String> {
    let text = output(command("rustc", ["-vV"]).current_dir(&paths.root))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` does not say its host")
}
