//! The node's GPUs, as AMD's device plugin and node labeller would show them.

use std::time::Duration;

use serde_json::Value;

use super::{
    kubectl::Kubectl,
    layout::{GPUS, NODE},
};
use crate::wait;

/// What the node labeller says of an MI300X machine.
const LABELS: [&str; 6] = [
    "amd.com/gpu.product-name=AMD_Instinct_MI300X_OAM",
    "amd.com/gpu.family=AI",
    "amd.com/gpu.device-id=74a1",
    "amd.com/gpu.vram=192G",
    "amd.com/gpu.cu-count=304",
    "amd.com/gpu.simd-count=1216",
];

/// Takes the GPUs away from a node whose kubelet is about to start. A kubelet that finds them recorded sets them to zero until
/// their device plugin reports, and would then refuse the pods that already use them; one that does not know them lets the pods be.
pub(crate) fn withdraw(kubectl: &Kubectl) {
    for list in ["capacity", "allocatable"] {
        let patch = format!(r#"[{{"op": "remove", "path": "/status/{list}/amd.com~1gpu"}}]"#);
        // Fails where there is no node or no GPU on it yet: nothing to withdraw.
        let _ = patch_status(kubectl, &patch);
    }
}

/// Shows the GPUs and waits until pods can have them. Also after a restart of the kubelet.
pub(crate) fn offer(kubectl: &Kubectl) -> anyhow::Result<()> {
    if allocatable(&kubectl.json(["get", "node", NODE])?) == Some(GPUS) {
        return Ok(());
    }
    let patch = format!(r#"[{{"op": "add", "path": "/status/capacity/amd.com~1gpu", "value": "{GPUS}"}}]"#);
    patch_status(kubectl, &patch)?;
    kubectl.output(["label", "node", NODE, "--overwrite"].iter().chain(&LABELS))?;
    wait::until(
        "the node's GPUs",
        Duration::from_secs(30),
        "see `cargo xtask cluster logs kubelet`",
        || Ok((allocatable(&kubectl.json(["get", "node", NODE])?) == Some(GPUS)).then_some(())),
    )
}

fn patch_status(kubectl: &Kubectl, patch: &str) -> anyhow::Result<()> {
    let node = ["patch", "node", NODE, "--subresource", "status"];
    kubectl.output(node.iter().chain(&["--type", "json", "-p", patch]))?;
    Ok(())
}

/// GPUs that pods can have.
pub(crate) fn allocatable(node: &Value) -> Option<u32> {
    node["status"]["allocatable"]["amd.com/gpu"].as_str()?.parse().ok()
}
