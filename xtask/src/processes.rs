//! This machine's processes, as /proc shows them.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context as _;

/// A process, told from a later one with the same id by the time it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    /// Id as this machine sees it.
    pub(crate) pid: u32,
    /// Clock ticks after boot.
    started: u64,
}

impl Process {
    /// A running process.
    pub(crate) fn find(pid: u32) -> Option<Self> {
        let (_, state, started) = stat(pid)?;
        (state != 'Z').then_some(Self { pid, started })
    }

    /// The first child of a process.
    pub(crate) fn first_child(parent: u32) -> Option<Self> {
        let child = all().find(|pid| stat(*pid).is_some_and(|(found, _, _)| found == parent))?;
        Self::find(child)
    }

    /// Whether it still runs.
    pub(crate) fn alive(&self) -> bool {
        Self::find(self.pid).as_ref() == Some(self)
    }

    /// The process recorded in a file, if it still runs.
    pub(crate) fn recorded(file: &Path) -> Option<Self> {
        let text = fs::read_to_string(file).ok()?;
        let (pid, started) = text.trim().split_once(' ')?;
        let process = Self {
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
        };
        process.alive().then_some(process)
    }

    /// Records it in a file.
    pub(crate) fn record(&self, file: &Path) -> anyhow::Result<()> {
        fs::write(file, format!("{} {}\n", self.pid, self.started))
            .with_context(|| format!("cannot write {}", file.display()))
    }
}

/// Ids of all processes.
pub(crate) fn all() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Every process and its parent.
pub(crate) fn parents() -> BTreeMap<u32, u32> {
    all().filter_map(|pid| Some((pid, stat(pid)?.0))).collect()
}

fn stat(pid: u32) -> Option<(u32, char, u64)> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parent, state and start time of a `/proc/PID/stat` line. The program's name, in brackets, may hold anything.
fn parse_stat(stat: &str) -> Option<(u32, char, u64)> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    // Field 22 of the line; the state is field 3 and the parent field 4.
    let started = fields.nth(17)?.parse().ok()?;
    Some((parent, state, started))
}

#[cfg(test)]
mod tests {
    use super::{Process, parse_stat};

    #[test]
    fn stat_lines_with_odd_names_are_read() {
        let line = "812 (a) S b) S 7 812 812 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9";
        assert_eq!(parse_stat(line), Some((7, 'S', 4711)));
        assert_eq!(parse_stat("812"), None);
    }

    #[test]
    fn a_process_is_recognised_again() {
        let own = Process::find(std::process::id()).unwrap();
        let file = std::env::temp_dir().join(format!("coterie-xtask-{}.pid", std::process::id()));
        own.record(&file).unwrap();
        assert_eq!(Process::recorded(&file), Some(own.clone()));
        Process {
            started: own.started + 1,
            ..own
        }
        .record(&file)
        .unwrap();
        assert_eq!(Process::recorded(&file), None);
        std::fs::remove_file(file).unwrap();
    }
}
