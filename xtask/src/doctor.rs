//! What this machine lacks, one line each, with the command that mends it.

use std::path::Path;

use anyhow::bail;

use crate::{
    command::{command, output, shown, succeeds},
    progress::Report,
};

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Install missing Debian packages.
    #[arg(long)]
    yes: bool,
}

/// What a command is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Build the project and its images.
    Images,
    /// Also run the local cluster.
    Cluster,
}

/// Debian packages, and a file that shows whether each is there.
const PACKAGES: [(&str, &str, Need); 11] = [
    ("gcc", "gcc", Need::Images),
    ("buildah", "buildah", Need::Images),
    ("ca-certificates", "/etc/ssl/certs/ca-certificates.crt", Need::Images),
    ("procps", "kill", Need::Cluster),
    ("containerd", "containerd", Need::Cluster),
    ("runc", "runc", Need::Cluster),
    ("containernetworking-plugins", "/usr/lib/cni/bridge", Need::Cluster),
    ("iproute2", "ip", Need::Cluster),
    ("nftables", "nft", Need::Cluster),
    ("iptables", "iptables", Need::Cluster),
    ("conntrack", "conntrack", Need::Cluster),
];

/// The oldest Go that fetches the exact version a module asks for by itself.
const OLDEST_GO: (u32, u32) = (1, 21);

/// Checks everything and says so.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    require(Need::Cluster, args.yes, &Report::new())?;
    println!("nothing is missing");
    Ok(())
}

/// Fails with one line for each thing that is missing; installs packages first where allowed.
pub(crate) fn require(need: Need, yes: bool, report: &Report) -> anyhow::Result<()> {
    let missing = missing_packages(need);
    if !missing.is_empty() && install_allowed(yes) {
        install(&missing, report)?;
    }
    let problems = problems(need);
    if problems.is_empty() {
        return Ok(());
    }
    for problem in &problems {
        report.say(&format!("missing: {problem}"));
    }
    bail!("this machine lacks {} of what is needed (see above)", problems.len());
}

fn problems(need: Need) -> Vec<String> {
    let mut problems = Vec::new();
    if need == Need::Cluster && !is_root() {
        problems.push(
            "root: the local cluster makes namespaces and a network link; run it with sudo, or as root".to_owned(),
        );
    }
    let packages = missing_packages(need);
    if !packages.is_empty() {
        problems.push(format!(
            "Debian packages: apt-get install {} (or add --yes)",
            packages.join(" ")
        ));
    }
    if !succeeds(&mut command("cargo", ["--version"])) {
        problems.push("Rust: install rustup; it then takes the pinned toolchain by itself".to_owned());
    }
    if need == Need::Cluster {
        problems.extend(go_problem(
            output(&mut command("go", ["env", "GOVERSION"])).ok().as_deref(),
        ));
    }
    problems
}

fn go_problem(version: Option<&str>) -> Option<String> {
    const HOW: &str =
        "apt-get install golang-go on Debian 13, from backports on Debian 12, or the Go project's own archive";
    let Some(version) = version else {
        return Some(format!("Go 1.21 or later, to build the cluster's commands: {HOW}"));
    };
    let numbers: Vec<u32> = version
        .trim()
        .trim_start_matches("go")
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect();
    match numbers[..] {
        [major, minor, ..] if (major, minor) < OLDEST_GO => {
            Some(format!("Go 1.21 or later, not {}: {HOW}", version.trim()))
        }
        _ => None,
    }
}

fn missing_packages(need: Need) -> Vec<&'static str> {
    PACKAGES
        .iter()
        .filter(|(_, file, for_what)| (need == Need::Cluster || *for_what == Need::Images) && !present(file))
        .map(|(package, _, _)| *package)
        .collect()
}

/// A file by path, or a program on PATH or where root's programs are.
fn present(file: &str) -> bool {
    if file.starts_with('/') {
        return Path::new(file).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(Into::into));
    folders.into_iter().any(|folder| folder.join(file).is_file())
}

fn install_allowed(yes: bool) -> bool {
    yes || std::env::var("CI").is_ok_and(|value| value == "true")
}

fn install(packages: &[&str], report: &Report) -> anyhow::Result<()> {
    if !is_root() || !present("apt-get") {
        return Ok(());
    }
    report.say(&format!("installing Debian packages: {}", packages.join(" ")));
    shown(&mut command("apt-get", ["-q", "update"]))?;
    shown(
        command("apt-get", ["-q", "install", "--yes", "--no-install-recommends"])
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}

fn is_root() -> bool {
    output(&mut command("id", ["-u"])).is_ok_and(|id| id.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::{go_problem, present};

    #[test]
    fn an_old_or_absent_go_is_named() {
        assert_eq!(go_problem(Some("go1.26.0\n")), None);
        assert_eq!(go_problem(Some("go1.21rc2")), None);
        assert_eq!(go_problem(Some("devel +abc")), None);
        assert!(go_problem(Some("go1.19.8")).unwrap().contains("go1.19.8"));
        assert!(go_problem(None).unwrap().contains("Go 1.21"));
    }

    #[test]
    fn programs_are_found_on_path() {
        assert!(present("sh") && present("/proc/self") && !present("no-such-program-here"));
    }
}
