//! Free space, and digests of files.

use std::path::Path;

use anyhow::Context as _;

use crate::command::{command, output, with_input};

/// Below this the person is told: a first run builds several GB.
const LITTLE: u64 = 10 << 30;

/// Free bytes on the file system that holds `path`.
pub(crate) fn free(path: &Path) -> anyhow::Result<u64> {
    let text = output(command("df", ["--output=avail", "-B1"]).arg(path))?;
    parse_df(&text).with_context(|| format!("cannot read the free space of {}", path.display()))
}

/// A warning where little disk is left.
pub(crate) fn warning(path: &Path) -> Option<String> {
    let free = free(path).ok()?;
    (free < LITTLE).then(|| {
        format!(
            "only {} GB free on the disk of {}: a first run needs about 10 (Go's cache 6, images and builds the rest)",
            free >> 30,
            path.display()
        )
    })
}

fn parse_df(text: &str) -> Option<u64> {
    text.lines().nth(1)?.trim().parse().ok()
}

/// SHA-256 of a text, in hexadecimal.
pub(crate) fn digest(text: &str) -> anyhow::Result<String> {
    first_word(&with_input(&mut command("sha256sum", ["-"]), text)?)
}

/// SHA-256 of a file, in hexadecimal.
pub(crate) fn digest_file(path: &Path) -> anyhow::Result<String> {
    first_word(&output(command("sha256sum", ["--"]).arg(path))?)
}

fn first_word(text: &str) -> anyhow::Result<String> {
    // sha256sum marks a name with odd characters by a backslash in front of the digest.
    let word = text.split_whitespace().next().map(|word| word.trim_start_matches('\\'));
    word.map(str::to_owned).context("sha256sum printed nothing")
}

#[cfg(test)]
mod tests {
    use super::{digest, parse_df};

    #[test]
    fn df_output_is_read() {
        assert_eq!(parse_df("    Avail\n77964857344\n"), Some(77_964_857_344));
        assert_eq!(parse_df("Avail\n"), None);
    }

    #[test]
    fn digest_is_sha256() {
        assert!(digest("").unwrap().starts_with("e3b0c44298fc1c14"));
    }
}
