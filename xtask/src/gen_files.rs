//! Files that are generated from code and committed: the list of generators, and the check that nothing drifted.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};

use crate::{
    command::{command, quiet},
    images::clear_cargo_run,
    paths::Paths,
    progress::Report,
};

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail where a committed file is not what the code generates.
    #[arg(long)]
    check: bool,
}

/// Makes files from code.
struct Generator {
    name: &'static str,
    /// Binary of the workspace that writes the files.
    binary: &'static str,
    /// Its arguments.
    args: &'static [&'static str],
    /// Folder that it writes to.
    folder: &'static str,
    /// Ending of the files that it owns there.
    ending: &'static str,
    /// Folder that gets a copy of each.
    copy: Option<&'static str>,
}

/// All generators.
const GENERATORS: [Generator; 1] = [Generator {
    name: "custom resource definitions",
    binary: "coterie-crdgen",
    args: &["crds"],
    folder: "crds",
    ending: ".yaml",
    copy: Some("charts/coterie/files/crds"),
}];

/// Runs the command.
pub(crate) fn run(args: &Args, paths: &Paths, report: &Report) -> anyhow::Result<()> {
    let mut drifted = Vec::new();
    for generator in &GENERATORS {
        let verb = if args.check { "check" } else { "generate" };
        report.step(&format!("{verb} {}", generator.name), |_| {
            let before = snapshot(paths, generator)?;
            generate(paths, generator)?;
            let after = snapshot(paths, generator)?;
            if args.check {
                put_back(&before, &after)?;
                drifted.extend(differing(&before, &after));
            }
            Ok(())
        })?;
    }
    if !drifted.is_empty() {
        let names: Vec<_> = drifted.iter().map(|path| relative(paths, path)).collect();
        bail!(
            "not what the code generates: {}. Run `cargo xtask gen` and commit the result",
            names.join(", ")
        );
    }
    Ok(())
}

/// Fails where a committed file is not what the code generates.
pub(crate) fn check(paths: &Paths, report: &Report) -> anyhow::Result<()> {
    run(&Args { check: true }, paths, report)
}

fn generate(paths: &Paths, generator: &Generator) -> anyhow::Result<()> {
    let mut cargo = command("cargo", ["run", "--quiet", "--bin", generator.binary, "--"]);
    cargo.args(generator.args).current_dir(&paths.root);
    clear_cargo_run(&mut cargo);
    quiet(&mut cargo)?;
    let Some(copy) = generator
        .copy
        .map(|folder| paths.root.join(folder))
        .filter(|_| paths.root.join("charts").is_dir())
    else {
        return Ok(());
    };
    fs::create_dir_all(&copy)?;
    let made = owned(&paths.root.join(generator.folder), generator.ending)?;
    for (path, text) in &made {
        fs::write(
            copy.join(path.file_name().context("a generated file has no name")?),
            text,
        )?;
    }
    for (path, _) in owned(&copy, generator.ending)? {
        if !made.keys().any(|source| source.file_name() == path.file_name()) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

type Files = BTreeMap<PathBuf, String>;

/// What a generator's files hold now.
fn snapshot(paths: &Paths, generator: &Generator) -> anyhow::Result<Files> {
    let mut files = owned(&paths.root.join(generator.folder), generator.ending)?;
    if let Some(copy) = generator.copy {
        files.extend(owned(&paths.root.join(copy), generator.ending)?);
    }
    Ok(files)
}

fn owned(folder: &Path, ending: &str) -> anyhow::Result<Files> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(Files::new());
    };
    let mut files = Files::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_file() && path.to_string_lossy().ends_with(ending) {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.insert(path, text);
        }
    }
    Ok(files)
}

fn differing(before: &Files, after: &Files) -> Vec<PathBuf> {
    let all: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    all.into_iter()
        .filter(|path| before.get(*path) != after.get(*path))
        .cloned()
        .collect()
}

fn put_back(before: &Files, after: &Files) -> anyhow::Result<()> {
    for path in differing(before, after) {
        match before.get(&path) {
            Some(text) => fs::write(&path, text)?,
            None => fs::remove_file(&path)?,
        }
    }
    Ok(())
}

fn relative(paths: &Paths, path: &Path) -> String {
    path.strip_prefix(&paths.root).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::{Files, differing};

    #[test]
    fn changed_new_and_gone_files_differ() {
        let files = |list: &[(&str, &str)]| -> Files {
            list.iter()
                .map(|(path, text)| (path.into(), (*text).to_owned()))
                .collect()
        };
        let before = files(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let after = files(&[("a", "1"), ("b", "2"), ("d", "1")]);
        assert_eq!(
            differing(&before, &after),
            ["b", "c", "d"].map(std::path::PathBuf::from)
        );
    }
}
