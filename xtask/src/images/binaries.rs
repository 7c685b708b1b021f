//! The binaries that go into images: linked statically, since there is nothing else in an image.

use std::{path::PathBuf, process::Command};

use anyhow::Context as _;

use crate::{
    command::{command, output, shown},
    paths::Paths,
};

/// Builds binaries. The target folder is their own: cargo works in one at a time, and other flags would rebuild everything there.
pub(crate) fn build(paths: &Paths, binaries: &[&str]) -> anyhow::Result<()> {
    let mut cargo = command("cargo", ["build"]);
    // `--workspace`, so that features are those of every other build.
    cargo
        .args(["--workspace", "--profile", "images", "--target", &host(paths)?])
        .args(binaries.iter().flat_map(|binary| ["--bin", binary]))
        .current_dir(&paths.root)
        .env("CARGO_TARGET_DIR", target(paths))
        .env("RUSTFLAGS", "-C target-feature=+crt-static");
    clear_cargo_run(&mut cargo);
    shown(&mut cargo)
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
