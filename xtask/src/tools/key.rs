//! The name of a set of built commands: the same sources, Go and flags give the same key.

use std::fmt::Write as _;

use anyhow::Context as _;

use super::MODULES;
use crate::{
    command::{command, output},
    disk::digest,
    paths::Paths,
};

/// Characters of the digest that name the folder.
const LENGTH: usize = 16;

/// The key for this checkout's modules and this machine's Go.
pub(crate) fn of(paths: &Paths) -> anyhow::Result<String> {
    let mut parts = Vec::new();
    for module in &MODULES {
        let folder = paths.root.join("xtask/tools").join(module.folder);
        let mut files: Vec<_> = std::fs::read_dir(&folder)
            .with_context(|| format!("cannot read {}", folder.display()))?
            .collect::<Result<Vec<_>, _>>()?;
        files.sort_by_key(std::fs::DirEntry::file_name);
        for file in files {
            let name = format!("{}/{}", module.folder, file.file_name().to_string_lossy());
            parts.push((name, std::fs::read_to_string(file.path())?));
        }
        parts.push((format!("{} flags", module.folder), module.ldflags.to_owned()));
    }
    let go = output(command("go", ["env", "GOVERSION", "GOOS", "GOARCH"]).current_dir(&paths.root))
        .context("Go is needed to build the cluster's commands: `cargo xtask doctor` says how to get it")?;
    parts.push(("go".to_owned(), go));
    Ok(digest(&text(&parts))?[..LENGTH].to_owned())
}

/// What is hashed. Lengths keep two different lists from reading the same.
fn text(parts: &[(String, String)]) -> String {
    let mut text = String::new();
    for (name, content) in parts {
        let _ = writeln!(text, "{name} {}\n{content}", content.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn every_part_counts() {
        let part = |name: &str, content: &str| (name.to_owned(), content.to_owned());
        let base = text(&[part("a", "1"), part("b", "2")]);
        assert_ne!(base, text(&[part("a", "1"), part("b", "3")]));
        assert_ne!(base, text(&[part("a", "1"), part("c", "2")]));
        assert_ne!(base, text(&[part("a", "1\nb 1\n2")]));
    }
}
