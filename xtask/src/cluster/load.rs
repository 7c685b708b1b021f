//! Images into the node's containerd.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use super::layout::Layout;
use crate::command::{command, output, quiet};

/// Loaded images of one name that are kept even when no container uses them: a fleet may still ask for one of the last few.
const KEPT: usize = 5;

/// Imports an image archive unless the image is there.
pub(crate) fn load(layout: &Layout, reference: &str, archive: &Path) -> anyhow::Result<()> {
    let history = remember(layout, reference)?;
    if present(layout)?.contains(reference) {
        return Ok(());
    }
    quiet(ctr(layout).args(["images", "import"]).arg(archive))?;
    forget_older(layout, reference, &history)
}

fn present(layout: &Layout) -> anyhow::Result<BTreeSet<String>> {
    Ok(output(ctr(layout).args(["images", "ls", "-q"]))?
        .lines()
        .map(str::to_owned)
        .collect())
}

/// Puts an image at the end of the list of what was loaded, and returns the list.
fn remember(layout: &Layout, reference: &str) -> anyhow::Result<Vec<String>> {
    let file = layout.file("loaded-images");
    let before = fs::read_to_string(&file).unwrap_or_default();
    let mut history: Vec<_> = before
        .lines()
        .filter(|line| *line != reference)
        .map(str::to_owned)
        .collect();
    history.push(reference.to_owned());
    fs::write(&file, history.join("\n") + "\n")?;
    Ok(history)
}

/// Removes old images of the same name that no container uses: image garbage collection is off, and every rebuild adds one.
fn forget_older(layout: &Layout, reference: &str, history: &[String]) -> anyhow::Result<()> {
    let used = output(ctr(layout).args(["containers", "ls"]))?;
    let images = present(layout)?;
    for old in older(history, reference, &used) {
        if images.contains(old) {
            quiet(ctr(layout).args(["images", "rm", old]))?;
        }
    }
    Ok(())
}

fn older<'a>(history: &'a [String], reference: &str, used: &str) -> Vec<&'a str> {
    let name = |image: &str| image.rsplit_once(':').map(|(name, _)| name.to_owned());
    let used: BTreeSet<&str> = used.split_whitespace().collect();
    let same = history.iter().rev().filter(|image| name(image) == name(reference));
    same.skip(KEPT)
        .map(String::as_str)
        .filter(|image| !used.contains(image))
        .collect()
}

fn ctr(layout: &Layout) -> Command {
    let mut ctr = command("ctr", ["--namespace", "k8s.io", "--address"]);
    ctr.arg(layout.containerd_socket());
    ctr
}

/// Whether containerd answers.
pub(crate) fn containerd_answers(layout: &Layout) -> bool {
    quiet(ctr(layout).arg("version")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::older;

    #[test]
    fn only_old_unused_images_of_the_same_name_go() {
        let history: Vec<String> = ["a:1", "a:2", "ab:1", "a:3", "a:4", "a:5", "a:6", "a:7"]
            .iter()
            .map(|name| format!("localhost/{name}"))
            .collect();
        let used = "CONTAINER IMAGE RUNTIME\nx localhost/a:2 io.containerd.runc.v2\n";
        assert_eq!(older(&history, "localhost/a:7", used), ["localhost/a:1"]);
        assert!(older(&history[..5], "localhost/a:4", used).is_empty());
    }
}
