//! What runs in the cluster from the start: the pause image, DNS.

use std::{
    fs,
    net::UdpSocket,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail};

use super::{
    config::PAUSE_IMAGE,
    kubectl::Kubectl,
    layout::{DNS_IP, Layout},
    load::load,
    node::plain_environment,
};
use crate::{
    command::{command, output, quiet},
    images::Buildah,
    paths::Paths,
    tools::COREDNS,
    wait,
};

/// Holds a pod's namespaces: sleeps, reaps what is left to it, ends when told.
const PAUSE: &str = r"#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void end(int signal) { (void)signal; _exit(0); }
static void reap(int signal) { (void)signal; while (waitpid(-1, 0, WNOHANG) > 0) {} }
int main(void) {
    signal(SIGTERM, end);
    signal(SIGINT, end);
    signal(SIGCHLD, reap);
    for (;;) pause();
}
";

/// Brings the pause and CoreDNS images to the node. Their archives outlive the cluster, so that a new one has them at once.
pub(crate) fn images(layout: &Layout, paths: &Paths) -> anyhow::Result<()> {
    let buildah = Buildah::new(paths);
    let pause = archive(&buildah, "pause-1", PAUSE_IMAGE, |context| {
        fs::write(context.join("pause.c"), PAUSE)?;
        quiet(command("gcc", ["-static", "-Os", "-s", "-o", "pause", "pause.c"]).current_dir(context))?;
        Ok("FROM scratch\nCOPY pause /pause\nUSER 65535:65535\nENTRYPOINT [\"/pause\"]\n")
    })?;
    load(layout, PAUSE_IMAGE, &pause)?;
    let reference = coredns_image();
    let coredns = archive(&buildah, &format!("coredns-{COREDNS}"), &reference, |context| {
        fs::copy(layout.bin.join("coredns"), context.join("coredns"))?;
        Ok("FROM scratch\nCOPY coredns /coredns\nENTRYPOINT [\"/coredns\"]\n")
    })?;
    load(layout, &reference, &coredns)
}

fn coredns_image() -> String {
    format!("localhost/coredns:{COREDNS}")
}

fn archive(
    buildah: &Buildah,
    name: &str,
    reference: &str,
    prepare: impl FnOnce(&Path) -> anyhow::Result<&'static str>,
) -> anyhow::Result<PathBuf> {
    let archive = buildah.archive(name);
    if !archive.exists() {
        let work = buildah.work(name)?;
        let containerfile = prepare(&work.context())?;
        work.build(containerfile, None, reference, &archive)?;
    }
    Ok(archive)
}

/// Installs CoreDNS as kubeadm would, from our image and once.
pub(crate) fn dns(layout: &Layout, kubectl: &Kubectl) -> anyhow::Result<()> {
    let mut kubeadm = command(
        layout.bin.join("kubeadm"),
        ["init", "phase", "addon", "coredns", "--print-manifest", "--config"],
    );
    kubeadm.arg(layout.file("kubeadm.yaml"));
    plain_environment(&mut kubeadm);
    kubectl
        .apply(&own_image(&output(&mut kubeadm)?, &coredns_image()))
        .map(drop)
}

fn own_image(manifest: &str, image: &str) -> String {
    let line = |line: &str| {
        let indent = &line[..line.len() - line.trim_start().len()];
        match line.trim_start() {
            text if text.starts_with("image: ") => format!("{indent}image: {image}\n"),
            "replicas: 2" => format!("{indent}replicas: 1\n"),
            _ => format!("{line}\n"),
        }
    };
    manifest.lines().map(line).collect()
}

/// Waits until DNS answers this machine over its Service: link, routes, kube-proxy and CoreDNS all work then.
pub(crate) fn wait_for_dns() -> anyhow::Result<()> {
    let hint = "see `cargo xtask cluster logs kubelet` and `kubectl -n kube-system get pods`";
    wait::until("an answer of the cluster's DNS", Duration::from_secs(90), hint, || {
        Ok(resolve("kubernetes.default.svc.cluster.local").is_ok().then_some(()))
    })
}

/// Asks the cluster's DNS for an address.
fn resolve(name: &str) -> anyhow::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_read_timeout(Some(Duration::from_millis(500)))?;
    socket.connect((DNS_IP, 53)).context("no route to the cluster's DNS")?;
    socket.send(&query(name))?;
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer)?;
    if !answers(&answer[..length]) {
        bail!("no address for {name}");
    }
    Ok(())
}

const QUERY_ID: [u8; 2] = [0xc0, 0x7e];

/// A DNS query for an IPv4 address (RFC 1035, section 4).
fn query(name: &str) -> Vec<u8> {
    let mut bytes = QUERY_ID.to_vec();
    bytes.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        bytes.push(label.len() as u8);
        bytes.extend(label.as_bytes());
    }
    bytes.extend([0, 0, 1, 0, 1]);
    bytes
}

/// Whether a message answers our query without an error and with an address.
fn answers(message: &[u8]) -> bool {
    message.len() > 12 && message[..2] == QUERY_ID && message[3] << 4 == 0 && (message[6], message[7]) != (0, 0)
}

#[cfg(test)]
mod tests {
    use super::{answers, own_image, query};

    #[test]
    fn the_manifest_gets_our_image_once() {
        let manifest =
            "spec:\n  replicas: 2\n  x:\n      image: registry/coredns:v1\n      imagePullPolicy: IfNotPresent\n";
        let expected =
            "spec:\n  replicas: 1\n  x:\n      image: localhost/coredns:1\n      imagePullPolicy: IfNotPresent\n";
        assert_eq!(own_image(manifest, "localhost/coredns:1"), expected);
    }

    #[test]
    fn a_query_is_well_formed() {
        let bytes = query("a.bc");
        assert_eq!(bytes[12..], [1, b'a', 2, b'b', b'c', 0, 0, 1, 0, 1]);
        assert!(!answers(&bytes));
    }
}
