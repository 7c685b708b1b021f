//! The processes of the cluster: what each is started with.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    layout::{Layout, NODE, NODE_IP, PODS, SERVICES},
    node::Node,
};
use crate::wait;

/// A process of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Component {
    Containerd,
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
    Kubelet,
    KubeProxy,
}

impl Component {
    /// All, in the order in which they start.
    pub(crate) const ALL: [Self; 7] = [
        Self::Containerd,
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kubelet,
        Self::KubeProxy,
    ];

    /// Name of its program and of its log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Containerd => "containerd",
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
        }
    }

    /// Starts it where it does not run; says whether it had to.
    pub(crate) fn ensure(self, node: &Node, layout: &Layout) -> anyhow::Result<bool> {
        if node.programs().contains_key(self.name()) {
            return Ok(false);
        }
        node.spawn(&layout.log(self.name()), &self.program(layout), &self.args(&layout.dir))?;
        // It is a shell for a moment before it is the program.
        let hint = format!("it ended at once, see `cargo xtask cluster logs {}`", self.name());
        wait::until(self.name(), Duration::from_secs(5), &hint, || {
            Ok(node.programs().contains_key(self.name()).then_some(()))
        })?;
        Ok(true)
    }

    fn program(self, layout: &Layout) -> PathBuf {
        match self {
            Self::Containerd => PathBuf::from("/usr/bin/containerd"),
            _ => layout.bin.join(self.name()),
        }
    }

    /// Relative paths are in the state folder, where every component is started.
    fn args(self, dir: &Path) -> Vec<String> {
        let text = match self {
            Self::Containerd => "--config containerd.toml".to_owned(),
            // The state is thrown away with the cluster: waiting for the disk would buy nothing.
            Self::Etcd => "--data-dir etcd --unsafe-no-fsync --listen-client-urls http://127.0.0.1:2379 \
                --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 \
                --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster default=http://127.0.0.1:2380"
                .to_owned(),
            Self::ApiServer => format!(
                "--etcd-servers http://127.0.0.1:2379 --advertise-address {NODE_IP} --secure-port 6443 \
                --service-cluster-ip-range {SERVICES} --allow-privileged --authorization-mode Node,RBAC \
                --enable-admission-plugins NodeRestriction --client-ca-file pki/ca.crt \
                --tls-cert-file pki/apiserver.crt --tls-private-key-file pki/apiserver.key \
                --service-account-key-file pki/sa.pub --service-account-signing-key-file pki/sa.key \
                --service-account-issuer https://kubernetes.default.svc.cluster.local \
                --kubelet-client-certificate pki/apiserver-kubelet-client.crt \
                --kubelet-client-key pki/apiserver-kubelet-client.key \
                --kubelet-preferred-address-types InternalIP \
                --requestheader-client-ca-file pki/front-proxy-ca.crt \
                --requestheader-allowed-names front-proxy-client \
                --requestheader-extra-headers-prefix X-Remote-Extra- \
                --requestheader-group-headers X-Remote-Group --requestheader-username-headers X-Remote-User \
                --proxy-client-cert-file pki/front-proxy-client.crt --proxy-client-key-file pki/front-proxy-client.key"
            ),
            Self::ControllerManager => format!(
                "{} --use-service-account-credentials --root-ca-file pki/ca.crt \
                --service-account-private-key-file pki/sa.key --cluster-signing-cert-file pki/ca.crt \
                --cluster-signing-key-file pki/ca.key --cluster-cidr {PODS} --service-cluster-ip-range {SERVICES} \
                --flex-volume-plugin-dir kubelet/volume-plugins",
                control("controller-manager")
            ),
            Self::Scheduler => control("scheduler"),
            Self::Kubelet => {
                let mut args = words(&format!(
                    "--kubeconfig conf/kubelet.conf --config kubelet.yaml --hostname-override {NODE} --node-ip {NODE_IP}"
                ));
                // Mount points: the kubelet wants them absolute.
                args.extend(["--root-dir".to_owned(), dir.join("kubelet").display().to_string()]);
                args.extend(["--cert-dir".to_owned(), dir.join("kubelet/pki").display().to_string()]);
                return args;
            }
            Self::KubeProxy => "--config proxy.yaml".to_owned(),
        };
        words(&text)
    }
}

/// Flags of a controller that is the only one of its kind.
fn control(name: &str) -> String {
    let file = format!("conf/{name}.conf");
    format!(
        "--kubeconfig {file} --authentication-kubeconfig {file} --authorization-kubeconfig {file} \
         --leader-elect=false --bind-address 127.0.0.1"
    )
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::Component;
    use std::path::Path;

    #[test]
    fn a_path_with_a_space_stays_one_argument() {
        let args = Component::Kubelet.args(Path::new("/a b"));
        assert!(args.contains(&"/a b/kubelet".to_owned()), "{args:?}");
    }

    #[test]
    fn no_argument_is_empty_or_padded() {
        for component in Component::ALL {
            for arg in component.args(Path::new("/x")) {
                assert!(!arg.is_empty() && arg == arg.trim(), "{component:?}: {arg:?}");
            }
        }
    }
}
