//! What every case works with.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::{
    peer::{Peer, Python},
    report::Report,
};

/// A run of the suite.
pub(crate) struct Suite {
    /// Fewer sizes and repetitions: shows that everything works, not how fast it is.
    pub(crate) quick: bool,
    /// How to start peers.
    pub(crate) python: Python,
    /// What was found so far.
    pub(crate) report: Report,
    dir: TempDir,
}

impl Suite {
    /// Nothing measured yet.
    pub(crate) fn new(quick: bool, python: Python) -> anyhow::Result<Self> {
        Ok(Self {
            quick,
            python,
            report: Report::default(),
            dir: TempDir::with_prefix("coterie-bench-")?,
        })
    }

    /// Where a file for the peers goes.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The same peer twice: with one thread, and with two.
    pub(crate) fn peers(&self) -> anyhow::Result<[(usize, Peer); 2]> {
        Ok([(1, self.python.start(1)?), (2, self.python.start(2)?)])
    }

    /// `full`, or `quick` in a quick run.
    pub(crate) fn rounds(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }
}

/// Says what is being measured.
pub(crate) fn say(what: &str) {
    eprintln!("… {what}");
}
