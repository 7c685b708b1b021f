//! A command of ours that runs beside other work, its output in a log.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::PathBuf,
    process::{Child, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};

use crate::{
    command::{command, quiet, tail},
    paths::Paths,
    processes,
    progress::Report,
    wait,
};

/// Lines of the log that an error repeats.
const ERROR_LINES: usize = 25;

/// A running `cargo xtask …`. Ended with all it started when dropped before it is done.
pub(crate) struct Background {
    what: &'static str,
    child: Child,
    log: PathBuf,
    done: bool,
}

impl Background {
    /// Starts it at low priority: what is in the foreground is waited for.
    pub(crate) fn start(paths: &Paths, what: &'static str, args: &[&str]) -> anyhow::Result<Self> {
        let log = paths.log(args.first().copied().unwrap_or("background"))?;
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let child = command("nice", ["-n", "5"])
            .arg(std::env::current_exe()?)
            .args(args)
            .current_dir(&paths.root)
            .env("CARGO_MANIFEST_DIR", paths.root.join("xtask"))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start to {what}"))?;
        Ok(Self {
            what,
            child,
            log,
            done: false,
        })
    }

    /// Waits for its end, showing the last line of its log.
    pub(crate) fn wait(mut self, report: &Report) -> anyhow::Result<()> {
        let text = format!("{} (log: {})", self.what, self.log.display());
        let status = report.step(&text, |step| {
            wait::until(self.what, Duration::from_secs(3600), "see the log", || {
                step.note(last_line(&fs::read_to_string(&self.log).unwrap_or_default()));
                Ok(self.child.try_wait()?)
            })
        })?;
        self.done = true;
        if !status.success() {
            let text = fs::read_to_string(&self.log).unwrap_or_default();
            bail!(
                "could not {}\n{}\nthe whole log: {}",
                self.what,
                tail(&text, ERROR_LINES),
                self.log.display()
            );
        }
        Ok(())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if self.done || !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let pids: Vec<String> = tree(self.child.id(), &processes::parents())
            .iter()
            .map(u32::to_string)
            .collect();
        let _ = quiet(command("kill", ["-TERM"]).args(pids));
        let _ = self.child.wait();
    }
}

/// A process and all its descendants.
fn tree(root: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found
}

/// The last line that says something. cargo and buildah redraw lines by a carriage return.
fn last_line(text: &str) -> String {
    let line = text.split(['\n', '\r']).rev().find(|line| !line.trim().is_empty());
    line.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{last_line, tree};

    #[test]
    fn a_tree_holds_all_descendants() {
        let parents = [(2, 1), (3, 2), (4, 2), (5, 4), (6, 1)].into();
        assert_eq!(tree(2, &parents), [2, 3, 4, 5]);
    }

    #[test]
    fn the_last_line_is_what_was_drawn_last() {
        assert_eq!(last_line("a\nb 1\rb 2\n\n"), "b 2");
        assert_eq!(last_line(""), "");
    }
}
