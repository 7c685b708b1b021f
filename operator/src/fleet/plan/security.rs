//! Security contexts of pods and containers.

use k8s_openapi::api::core::v1::{Capabilities, PodSecurityContext, SeccompProfile, SecurityContext};

/// Any pod: the runtime's default system calls.
pub(super) fn pod() -> PodSecurityContext {
    PodSecurityContext {
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".into(),
            localhost_profile: None,
        }),
        ..PodSecurityContext::default()
    }
}

/// Our own pods: never root.
pub fn own_pod() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        ..pod()
    }
}

/// Engines: no privileges. The user is the image's: engine images of GPU vendors run as root.
pub(super) fn container() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".into()]),
            add: None,
        }),
        ..SecurityContext::default()
    }
}

/// Our own containers: read-only root too.
pub fn own_container() -> SecurityContext {
    SecurityContext {
        read_only_root_filesystem: Some(true),
        ..container()
    }
}
