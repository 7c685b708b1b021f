//! What the node changes on this machine, undone when it ends: kernel settings, empty folders, cgroups.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;

use super::layout::{CGROUP, Layout, NODE_FOLDERS};
use crate::wait;

/// Kernel settings that the kubelet writes; they are the whole machine's, not a namespace's.
const SETTINGS: [&str; 6] = [
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
];

/// Remembers what the node is about to change, and makes what it needs.
pub(crate) fn prepare(layout: &Layout) -> anyhow::Result<()> {
    let saved = layout.file("host-settings");
    if !saved.exists() {
        let lines = SETTINGS
            .iter()
            .filter_map(|name| Some(format!("{name} {}", read_setting(name)?)));
        fs::write(&saved, lines.collect::<Vec<_>>().join("\n"))
            .with_context(|| format!("cannot write {}", saved.display()))?;
    }
    let made = layout.file("host-folders");
    for folder in NODE_FOLDERS.iter().filter(|folder| !Path::new(folder).exists()) {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {folder} (the node mounts over it)"))?;
        let before = fs::read_to_string(&made).unwrap_or_default();
        fs::write(&made, format!("{before}{folder}\n"))?;
    }
    make_cgroups()
}

/// Puts back what [`prepare`] remembered. Never fails half-way: what could not be undone is returned as text.
pub(crate) fn restore(layout: &Layout) -> Vec<String> {
    let mut left = Vec::new();
    let saved = layout.file("host-settings");
    for line in fs::read_to_string(&saved).unwrap_or_default().lines() {
        let Some((name, value)) = line.split_once(' ') else {
            continue;
        };
        if SETTINGS.contains(&name)
            && read_setting(name).is_some_and(|now| now != value)
            && let Err(error) = fs::write(Path::new("/proc/sys").join(name), value)
        {
            left.push(format!("kernel setting {name} (was {value}): {error}"));
        }
    }
    let _ = fs::remove_file(saved);
    let made = layout.file("host-folders");
    for folder in fs::read_to_string(&made)
        .unwrap_or_default()
        .lines()
        .filter(|folder| NODE_FOLDERS.contains(folder))
    {
        if fs::remove_dir(folder).is_err() && Path::new(folder).exists() {
            left.push(format!("folder {folder}"));
        }
    }
    let _ = fs::remove_file(made);
    for folder in cgroups() {
        // Processes that were just killed may hold a cgroup for some milliseconds.
        let gone = wait::until("", Duration::from_secs(10), "", || {
            Ok(remove_tree(&folder).then_some(()))
        });
        if gone.is_err() {
            left.push(format!("cgroup {}", folder.display()));
        }
    }
    left
}

fn read_setting(name: &str) -> Option<String> {
    Some(
        fs::read_to_string(Path::new("/proc/sys").join(name))
            .ok()?
            .trim()
            .to_owned(),
    )
}

/// The folders of our cgroup: one on version 2, one a controller on version 1.
fn cgroups() -> Vec<PathBuf> {
    cgroup_roots()
        .into_iter()
        .map(|root| root.join(CGROUP))
        .filter(|folder| folder.exists())
        .collect()
}

fn cgroup_roots() -> Vec<PathBuf> {
    let top = Path::new("/sys/fs/cgroup");
    if top.join("cgroup.controllers").exists() {
        return vec![top.to_owned()];
    }
    let found = fs::read_dir(top).into_iter().flatten().flatten();
    // `cpu` may be a link to `cpu,cpuacct`: one is enough.
    found
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// The kubelet does not make its own root.
fn make_cgroups() -> anyhow::Result<()> {
    for root in cgroup_roots() {
        let own = root.join(CGROUP);
        if let Err(error) = fs::create_dir_all(&own) {
            // A hierarchy that is only mounted for others (version 1's `unified`) need not take ours.
            if root.join("cgroup.controllers").exists() && root.ends_with("cgroup") {
                return Err(error).with_context(|| format!("cannot make {}", own.display()));
            }
            continue;
        }
        // Version 1: a new cpuset has no processors or memory until it is given some.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if fs::read_to_string(own.join(file)).is_ok_and(|now| now.trim().is_empty())
                && let Ok(all) = fs::read_to_string(root.join(file))
            {
                fs::write(own.join(file), all.trim())
                    .with_context(|| format!("cannot set {file} of {}", own.display()))?;
            }
        }
        // Version 2: children only get the controllers that their parents hand on.
        for controller in fs::read_to_string(root.join("cgroup.controllers"))
            .unwrap_or_default()
            .split_whitespace()
        {
            for level in [&root, &own] {
                let _ = fs::write(level.join("cgroup.subtree_control"), format!("+{controller}"));
            }
        }
    }
    Ok(())
}

/// Removes a cgroup and those under it; true when it is gone.
fn remove_tree(folder: &Path) -> bool {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
    !folder.exists()
}
