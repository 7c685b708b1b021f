//! Images into the node's containerd.

use std::{collections::BTreeSet, path::Path, process::Command};

use super::layout::Layout;
use crate::command::{command, output, quiet};

/// Imports an image archive unless the image is there.
pub(crate) fn load(layout: &Layout, reference: &str, archive: &Path) -> anyhow::Result<()> {
    if present(layout)?.contains(reference) {
        return Ok(());
    }
    quiet(ctr(layout).args(["images", "import"]).arg(archive))?;
    forget_older(layout, reference)
}

fn present(layout: &Layout) -> anyhow::Result<BTreeSet<String>> {
    Ok(output(ctr(layout).args(["images", "ls", "-q"]))?
        .lines()
        .map(str::to_owned)
        .collect())
}

/// Removes images of the same name that no container uses: image garbage collection is off, and every rebuild adds one.
fn forget_older(layout: &Layout, reference: &str) -> anyhow::Result<()> {
    let used = output(ctr(layout).args(["containers", "ls"]))?;
    let images = present(layout)?;
    for old in older(images.iter().map(String::as_str), reference, &used) {
        quiet(ctr(layout).args(["images", "rm", &old]))?;
    }
    Ok(())
}

fn older<'a>(images: impl Iterator<Item = &'a str>, reference: &str, used: &str) -> Vec<String> {
    let Some((name, _)) = reference.rsplit_once(':') else {
        return Vec::new();
    };
    let used: BTreeSet<&str> = used.split_whitespace().collect();
    images
        .filter(|image| image.rsplit_once(':').is_some_and(|(other, _)| other == name))
        .filter(|image| *image != reference && !used.contains(image))
        .map(str::to_owned)
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
    fn only_unused_images_of_the_same_name_go() {
        let images = [
            "localhost/a:1",
            "localhost/a:2",
            "localhost/a:3",
            "localhost/ab:1",
            "sha256:77",
        ];
        let used = "CONTAINER IMAGE RUNTIME\nx localhost/a:2 io.containerd.runc.v2\n";
        assert_eq!(older(images.into_iter(), "localhost/a:3", used), ["localhost/a:1"]);
    }
}
