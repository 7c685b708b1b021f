//! Which crate may depend on which: the directions of the architecture.

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::{
    command::{command, output},
    images::clear_cargo_run,
    paths::Paths,
};

/// What the parts that ship may use.
const SHARED: &[&str] = &["coterie-locality", "coterie-crds", "coterie-service"];

/// Our crates, and which of ours each may depend on. Operator, router and calibrator ship apart and never link each other;
/// `coterie-locality` is mathematics and knows none of us.
const ALLOWED: [(&str, &[&str]); 10] = [
    ("coterie-locality", &[]),
    ("coterie-crds", &[]),
    ("coterie-service", &[]),
    ("coterie-operator", SHARED),
    ("coterie-router", SHARED),
    ("coterie-calibrator", SHARED),
    ("coterie-engine-sim", &["coterie-locality", "coterie-service"]),
    (
        "coterie-e2e",
        &[
            "coterie-locality",
            "coterie-crds",
            "coterie-service",
            "coterie-engine-sim",
        ],
    ),
    ("coterie-bench", &["coterie-locality"]),
    ("xtask", &[]),
];

/// What tests of a part may use beside that: an engine to talk to.
const FOR_TESTS: &[&str] = &[
    "coterie-locality",
    "coterie-crds",
    "coterie-service",
    "coterie-engine-sim",
];

/// Checks the workspace.
pub(super) fn check(paths: &Paths) -> anyhow::Result<()> {
    let mut cargo = command("cargo", ["metadata", "--no-deps", "--format-version", "1"]);
    clear_cargo_run(cargo.current_dir(&paths.root));
    let metadata: Value = serde_json::from_str(&output(&mut cargo)?)?;
    let wrong = wrong(&metadata)?;
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

fn wrong(metadata: &Value) -> anyhow::Result<Vec<String>> {
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata lists no packages")?;
    let ours: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            wrong.push(format!(
                "{name}: say in xtask/src/test/directions.rs what it may depend on"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let other = dependency["name"].as_str().unwrap_or_default();
            let for_tests = dependency["kind"] == "dev" && FOR_TESTS.contains(&other);
            if ours.contains(&other) && !allowed.contains(&other) && !for_tests {
                wrong.push(format!("{name} must not depend on {other}"));
            }
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::wrong;
    use serde_json::json;

    #[test]
    fn a_wrong_direction_is_found() {
        let metadata = json!({"packages": [
            {"name": "coterie-operator", "dependencies": [{"name": "coterie-router", "kind": null}, {"name": "kube", "kind": null}]},
            {"name": "coterie-router", "dependencies": [{"name": "coterie-engine-sim", "kind": "dev"}]},
            {"name": "coterie-engine-sim", "dependencies": []},
            {"name": "coterie-new", "dependencies": []},
        ]});
        let wrong = wrong(&metadata).unwrap();
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert_eq!(wrong[0], "coterie-operator must not depend on coterie-router");
        assert!(wrong[1].starts_with("coterie-new"));
    }
}
