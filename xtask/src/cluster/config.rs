//! The configuration files of the cluster's components, as text.

use std::path::Path;

use super::layout::{CGROUP, DNS_IP, NODE, NODE_IP, PODS, SERVICES};
use crate::tools::KUBERNETES;

/// The image that holds a pod's namespaces.
pub(crate) const PAUSE_IMAGE: &str = "localhost/pause:1";

/// All files: name under the state folder, and content. `nameservers` answer names outside the cluster.
pub(crate) fn files(dir: &Path, nameservers: &[String]) -> [(&'static str, String); 6] {
    let dir = dir.display().to_string();
    [
        ("containerd.toml", containerd(&dir)),
        ("cni/10-bridge.conflist", cni()),
        ("kubeadm.yaml", kubeadm(&dir)),
        ("kubelet.yaml", kubelet(&dir)),
        ("proxy.yaml", proxy(&dir)),
        ("resolv.conf", resolv(nameservers)),
    ]
}

/// `state` is in the node's own /run: what a killed node left there must not outlive it.
/// `restrict_oom_score_adj`: without CAP_SYS_RESOURCE, as in many sandboxes, runc cannot lower the score and dies.
fn containerd(dir: &str) -> String {
    format!(
        r#"version = 2
root = "{dir}/containerd/root"
state = "/run/containerd"
[grpc]
  address = "{dir}/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{dir}/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  enable_unprivileged_ports = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{dir}/cni"
"#
    )
}

fn cni() -> String {
    format!(
        r#"{{"cniVersion": "0.4.0", "name": "coterie", "plugins": [
  {{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
    "ipam": {{"type": "host-local", "ranges": [[{{"subnet": "{PODS}"}}]], "routes": [{{"dst": "0.0.0.0/0"}}]}}}},
  {{"type": "portmap", "capabilities": {{"portMappings": true}}}}
]}}
"#
    )
}

fn kubeadm(dir: &str) -> String {
    format!(
        r#"apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: {NODE_IP}, bindPort: 6443}}
nodeRegistration: {{name: {NODE}, criSocket: "unix://{dir}/containerd/containerd.sock"}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: coterie
kubernetesVersion: {KUBERNETES}
certificatesDir: {dir}/pki
controlPlaneEndpoint: {NODE_IP}:6443
networking: {{serviceSubnet: {SERVICES}, podSubnet: {PODS}, dnsDomain: cluster.local}}
"#
    )
}

/// Image garbage collection is off: images are imported, not pulled, so one that is collected could not come back.
fn kubelet(dir: &str) -> String {
    format!(
        r"apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {{anonymous: {{enabled: false}}, webhook: {{enabled: true}}, x509: {{clientCAFile: {dir}/pki/ca.crt}}}}
authorization: {{mode: Webhook}}
clusterDNS: [{DNS_IP}]
clusterDomain: cluster.local
resolvConf: {dir}/resolv.conf
containerRuntimeEndpoint: unix://{dir}/containerd/containerd.sock
podLogsDir: {dir}/log/pods
volumePluginDir: {dir}/kubelet/volume-plugins
cgroupDriver: cgroupfs
cgroupRoot: /{CGROUP}
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
evictionHard: {{memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}}
imageGCHighThresholdPercent: 100
nodeStatusUpdateFrequency: 1s
nodeStatusReportFrequency: 5m
"
    )
}

fn proxy(dir: &str) -> String {
    format!(
        r"apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {{kubeconfig: {dir}/conf/super-admin.conf}}
mode: nftables
clusterCIDR: {PODS}
hostnameOverride: {NODE}
conntrack: {{maxPerCore: 0}}
"
    )
}

/// CoreDNS refuses to start without a server to forward to; the documentation address stands in where this machine has none.
fn resolv(nameservers: &[String]) -> String {
    if nameservers.is_empty() {
        return "nameserver 192.0.2.53\n".to_owned();
    }
    format!("nameserver {}\n", nameservers.join("\nnameserver "))
}

/// Name servers in a resolv.conf that a pod can reach: one on this machine's loopback would send CoreDNS to itself.
pub(crate) fn reachable_nameservers(resolv_conf: &str) -> Vec<String> {
    resolv_conf
        .lines()
        .filter_map(|line| line.trim().strip_prefix("nameserver")?.split_whitespace().next())
        .filter(|server| !server.starts_with("127.") && *server != "::1")
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{files, reachable_nameservers};
    use std::path::Path;

    #[test]
    fn every_path_is_in_the_state_folder() {
        let files = files(Path::new("/repo/.coterie/cluster"), &[]);
        for (name, text) in &files {
            assert!(
                !text.contains("/var/lib") && !text.contains("/etc/"),
                "{name} writes outside the state folder:\n{text}"
            );
        }
        let containerd = &files.iter().find(|(name, _)| *name == "containerd.toml").unwrap().1;
        assert!(containerd.contains("root = \"/repo/.coterie/cluster/containerd/root\""));
    }

    #[test]
    fn the_network_is_json() {
        let files = files(Path::new("/x"), &[]);
        let cni = &files.iter().find(|(name, _)| name.starts_with("cni/")).unwrap().1;
        let value: serde_json::Value = serde_json::from_str(cni).unwrap();
        assert_eq!(value["plugins"][0]["ipam"]["ranges"][0][0]["subnet"], "10.244.0.0/24");
    }

    #[test]
    fn loopback_name_servers_are_left_out() {
        let text = "# x\nnameserver 127.0.0.53\nnameserver 10.1.2.3\n nameserver ::1\nsearch a.b\n";
        assert_eq!(reachable_nameservers(text), ["10.1.2.3"]);
    }

    #[test]
    fn dns_always_has_somewhere_to_forward() {
        assert!(
            files(Path::new("/x"), &[])
                .iter()
                .any(|(name, text)| *name == "resolv.conf" && text.contains("nameserver 192.0.2.53"))
        );
        let own = files(Path::new("/x"), &["10.1.2.3".to_owned()]);
        assert!(
            own.iter()
                .any(|(name, text)| *name == "resolv.conf" && text == "nameserver 10.1.2.3\n")
        );
    }
}
