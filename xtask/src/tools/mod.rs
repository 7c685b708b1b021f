//! The pinned Go commands that the local cluster consists of.

mod build;
mod key;

use std::path::PathBuf;

use crate::{paths::Paths, progress::Report};

/// One Go module under `xtask/tools` and the commands built from it.
pub(crate) struct Module {
    /// Folder under `xtask/tools`.
    pub(crate) folder: &'static str,
    /// Packages; each becomes a binary named after its last part, but for `name`.
    pub(crate) packages: &'static [&'static str],
    /// Name of the binary where the package's own would not do.
    pub(crate) name: Option<&'static str>,
    /// Linker flags.
    pub(crate) ldflags: &'static str,
}

/// Kubernetes version, as `xtask/tools/kubernetes/go.mod` requires it: the last minor that takes containerd 1.x and cgroup v1.
pub(crate) const KUBERNETES: &str = "v1.35.4";

/// CoreDNS version, as `xtask/tools/coredns/go.mod` requires it.
pub(crate) const COREDNS: &str = "1.14.7";

/// All modules, the quick ones first.
pub(crate) const MODULES: [Module; 4] = [
    Module {
        folder: "etcd",
        packages: &["go.etcd.io/etcd/server/v3"],
        name: Some("etcd"),
        ldflags: "-s -w",
    },
    Module {
        folder: "coredns",
        packages: &["."],
        name: Some("coredns"),
        ldflags: "-s -w",
    },
    Module {
        folder: "kubernetes",
        packages: &[
            "k8s.io/kubernetes/cmd/kube-apiserver",
            "k8s.io/kubernetes/cmd/kube-controller-manager",
            "k8s.io/kubernetes/cmd/kube-scheduler",
            "k8s.io/kubernetes/cmd/kubelet",
            "k8s.io/kubernetes/cmd/kube-proxy",
            "k8s.io/kubernetes/cmd/kubectl",
            "k8s.io/kubernetes/cmd/kubeadm",
        ],
        name: None,
        // Without a version the servers call themselves v0.0.0, and kubeadm and clients refuse them.
        ldflags: "-s -w -X k8s.io/component-base/version.gitVersion=v1.35.4 -X k8s.io/component-base/version.gitMajor=1 \
                  -X k8s.io/component-base/version.gitMinor=35 -X k8s.io/component-base/version.gitTreeState=clean",
    },
    Module {
        folder: "helm",
        packages: &["helm.sh/helm/v4/cmd/helm"],
        name: Some("helm"),
        ldflags: "-s -w",
    },
];

/// The folder with the built commands, building them first where they are not there yet.
pub(crate) fn ensure(paths: &Paths, report: &Report) -> anyhow::Result<PathBuf> {
    let bin = paths.cache.join("bin").join(key::of(paths)?);
    if !bin.is_dir() {
        build::all(paths, &bin, report)?;
    }
    link(paths, &bin)?;
    Ok(bin)
}

/// `.coterie/bin` points at the commands, so that a person can put it on PATH.
fn link(paths: &Paths, bin: &std::path::Path) -> anyhow::Result<()> {
    let link = paths.state.join("bin");
    if std::fs::read_link(&link).is_ok_and(|now| now == bin) {
        return Ok(());
    }
    std::fs::create_dir_all(&paths.state)?;
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(bin, &link)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{COREDNS, KUBERNETES, MODULES};

    fn go_mod(folder: &str) -> String {
        std::fs::read_to_string(format!("{}/tools/{folder}/go.mod", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    #[test]
    fn versions_agree_with_the_modules() {
        assert!(go_mod("kubernetes").contains(&format!("k8s.io/kubernetes {KUBERNETES}")));
        assert!(go_mod("coredns").contains(&format!("github.com/coredns/coredns v{COREDNS}")));
        let flags = MODULES
            .iter()
            .find(|module| module.folder == "kubernetes")
            .unwrap()
            .ldflags;
        assert!(flags.contains(&format!("gitVersion={KUBERNETES} ")));
    }
}
