//! What an image is built from: files in a folder, the Containerfile's final stages, and a tag that follows both.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use super::{binaries, catalog::Image};
use crate::{
    command::{command, quiet},
    disk::{digest, digest_file},
    paths::Paths,
};

/// Line of `images/Containerfile` that ends the stage in which `docker build` compiles.
pub(crate) const MARK: &str = "# == images ==\n";

/// This machine's certificate authorities, for TLS that leaves the cluster.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The Containerfile without its compiling stage: what that would make is in the build context instead.
pub(crate) fn containerfile(paths: &Paths) -> anyhow::Result<String> {
    let file = paths.root.join("images/Containerfile");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    final_stages(&text).with_context(|| format!("{} has no line `{}`", file.display(), MARK.trim()))
}

fn final_stages(text: &str) -> Option<String> {
    let (_, stages) = text.split_once(MARK)?;
    Some(stages.replace("COPY --from=builder /out/", "COPY "))
}

/// Puts an image's files into its build context.
pub(crate) fn fill(paths: &Paths, image: &Image, folder: &Path) -> anyhow::Result<()> {
    for (source, place) in sources(paths, image)? {
        let target = folder.join(place);
        fs::create_dir_all(target.parent().unwrap_or(folder))?;
        quiet(command("cp", ["-rL"]).arg(&source).arg(&target))?;
    }
    // Numeric user 65532 must be able to read everything, whatever this person's umask is.
    quiet(command("chmod", ["-R", "a+rX"]).arg(folder))
}

/// The tag: a digest of everything in the image.
pub(crate) fn tag(paths: &Paths, image: &Image) -> anyhow::Result<String> {
    let mut parts = containerfile(paths)?;
    for (source, place) in sources(paths, image)? {
        for file in files(&source)? {
            let name = file.strip_prefix(&source).unwrap_or(&file);
            let _ = write!(parts, "\n{place} {} {}", name.display(), digest_file(&file)?);
        }
    }
    Ok(format!("dev-{}", &digest(&parts)?[..12]))
}

/// Where an image's files are, and their places in the build context.
fn sources(paths: &Paths, image: &Image) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let mut sources = vec![(PathBuf::from(AUTHORITIES), "ca-certificates.crt".to_owned())];
    for binary in image.binaries {
        sources.push((binaries::path(paths, binary)?, format!("bin/{binary}")));
    }
    sources.extend(
        image
            .files
            .iter()
            .map(|(source, place)| (paths.root.join(source), (*place).to_owned())),
    );
    Ok(sources)
}

/// All files under a path, in a fixed order.
fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let kind = fs::metadata(path).with_context(|| format!("{} is not there", path.display()))?;
    if kind.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path)? {
        entries.push(entry?.path());
    }
    entries.sort();
    let mut all = Vec::new();
    for entry in entries {
        all.extend(files(&entry)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::{MARK, final_stages};

    #[test]
    fn the_compiling_stage_is_left_out() {
        let text = format!("FROM rust AS builder\nRUN x\n{MARK}FROM scratch AS a\nCOPY --from=builder /out/bin/a /a\n");
        assert_eq!(final_stages(&text).unwrap(), "FROM scratch AS a\nCOPY bin/a /a\n");
        assert_eq!(final_stages("FROM x"), None);
    }
}
