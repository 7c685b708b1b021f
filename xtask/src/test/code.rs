//! Format, lints, documentation and tests of the code.

use std::process::Command;

use anyhow::Context as _;

use super::Run;
use crate::{
    command::{command, shown, succeeds},
    images::clear_cargo_run,
};

/// The feature without which the tests on a cluster are not built.
pub(super) const CLUSTER_FEATURE: &str = "coterie-e2e/cluster";

pub(super) fn fmt(run: &mut Run<'_>) -> anyhow::Result<()> {
    // Names of files, not every difference: `cargo fmt` mends them all.
    shown(&mut cargo(run, &["fmt", "--all", "--", "--check", "-l"])).context("these files need `cargo fmt --all`")
}

pub(super) fn clippy(run: &mut Run<'_>) -> anyhow::Result<()> {
    let args = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--features",
        CLUSTER_FEATURE,
        "--",
        "-D",
        "warnings",
    ];
    shown(&mut cargo(run, &args))?;
    if !succeeds(&mut cargo(run, &["deny", "--version"])) {
        run.report
            .say("cargo-deny is not installed: licences and bans are not checked (`cargo install cargo-deny`)");
        return Ok(());
    }
    shown(&mut cargo(run, &["deny", "check", "bans", "licenses", "sources"]))
}

pub(super) fn doc(run: &mut Run<'_>) -> anyhow::Result<()> {
    let mut cargo = cargo(
        run,
        &["doc", "--workspace", "--no-deps", "--quiet", "--document-private-items"],
    );
    shown(cargo.env("RUSTDOCFLAGS", "-D warnings"))
}

pub(super) fn unit(run: &mut Run<'_>) -> anyhow::Result<()> {
    let mut cargo = cargo(run, &["test", "--workspace"]);
    if run.args.only == ["unit"] && !run.args.rest.is_empty() {
        cargo.arg("--").args(&run.args.rest);
    }
    shown(&mut cargo)
}

pub(super) fn cargo(run: &Run<'_>, args: &[&str]) -> Command {
    let mut cargo = command("cargo", args);
    cargo.current_dir(&run.paths.root);
    clear_cargo_run(&mut cargo);
    cargo
}
