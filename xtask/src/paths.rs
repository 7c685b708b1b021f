//! Where things are: the repository, its git-ignored state, the cache that checkouts share.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The folders that the commands work in. All are absolute.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    /// Root of the repository.
    pub(crate) root: PathBuf,
    /// State of this checkout, git-ignored: `<root>/.coterie`.
    pub(crate) state: PathBuf,
    /// What all checkouts of a user share: `${XDG_CACHE_HOME:-~/.cache}/coterie`.
    pub(crate) cache: PathBuf,
    /// Cargo's target folder.
    pub(crate) target: PathBuf,
}

impl Paths {
    /// Finds them from the environment that cargo gives.
    pub(crate) fn find() -> anyhow::Result<Self> {
        // Set by `cargo run`. The compiled-in value would be another checkout's when they share a target folder.
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&manifest)
            .parent()
            .context("xtask is not inside the repository")?;
        let root = root
            .canonicalize()
            .with_context(|| format!("cannot find the repository at {}", root.display()))?;
        let cache = match std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
            Some(dir) => PathBuf::from(dir),
            None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache"),
        };
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
        Ok(Self {
            state: root.join(".coterie"),
            cache: cache.join("coterie"),
            target,
            root,
        })
    }

    /// Where output of background work goes.
    pub(crate) fn log(&self, name: &str) -> anyhow::Result<PathBuf> {
        let dir = self.state.join("log");
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(dir.join(format!("{name}.log")))
    }
}
