//! Names, addresses and files of the local cluster.

use std::path::{Path, PathBuf};

use crate::paths::Paths;

/// Name of the node object.
pub(crate) const NODE: &str = "node-0";
/// Address of the node; a /30 between it and this machine.
pub(crate) const NODE_IP: &str = "10.243.0.2";
/// This machine's end of the link.
pub(crate) const HOST_IP: &str = "10.243.0.1";
/// Pod addresses.
pub(crate) const PODS: &str = "10.244.0.0/24";
/// Service addresses.
pub(crate) const SERVICES: &str = "10.96.0.0/16";
/// Address of the cluster's DNS Service.
pub(crate) const DNS_IP: &str = "10.96.0.10";
/// This machine's end of the link to the node.
pub(crate) const LINK: &str = "coterie0";
/// Cgroup under which pods live, so that they can be told from another kubelet's.
pub(crate) const CGROUP: &str = "coterie";
/// What a node of two MI300X machines would offer: enough for every example at once.
pub(crate) const GPUS: u32 = 16;
/// Folders of the node alone that its programs expect at fixed places: empty at each start, as after a reboot.
pub(crate) const NODE_FOLDERS: [&str; 4] = ["/run", "/var/lib/cni", "/var/lib/kubelet", "/var/log/containers"];

/// Files of the cluster. All under one folder, but for the built commands.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// State folder.
    pub(crate) dir: PathBuf,
    /// Folder of the built commands.
    pub(crate) bin: PathBuf,
}

impl Layout {
    /// The layout of this checkout's cluster.
    pub(crate) fn new(paths: &Paths, bin: &Path) -> Self {
        Self {
            dir: paths.state.join("cluster"),
            bin: bin.to_owned(),
        }
    }

    /// A file in the state folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Log of a component.
    pub(crate) fn log(&self, component: &str) -> PathBuf {
        self.dir.join("log").join(format!("{component}.log"))
    }

    /// Socket of containerd.
    pub(crate) fn containerd_socket(&self) -> PathBuf {
        self.dir.join("containerd/containerd.sock")
    }

    /// What kubectl and clients are given: cluster administrator.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }
}
