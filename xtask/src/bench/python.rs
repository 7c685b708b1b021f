//! A virtual environment with the pinned peers, in the cache that checkouts share.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::{
    command::{command, quiet},
    paths::Paths,
};

/// The interpreter, its packages installed; made anew when the pins changed.
pub(super) fn ensure(paths: &Paths, requirements: &Path) -> anyhow::Result<PathBuf> {
    let folder = paths.cache.join("bench-python");
    let python = folder.join("bin/python");
    let done = folder.join("requirements.txt");
    let wanted = std::fs::read(requirements).with_context(|| format!("cannot read {}", requirements.display()))?;
    if python.exists() && std::fs::read(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    let mut venv = command("python3", ["-m", "venv", "--clear"]);
    quiet(venv.arg(&folder)).context("needs Python 3.11 or later with its module venv (Debian: python3-venv)")?;
    let mut pip = command(&python, ["-m", "pip", "install", "--quiet", "--requirement"]);
    quiet(pip.arg(requirements)).context("the peers could not be installed")?;
    // Written last: an installation that was cut is made again.
    std::fs::write(&done, wanted)?;
    Ok(python)
}
