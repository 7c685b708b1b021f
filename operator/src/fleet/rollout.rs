//! How far a rollout may go: a partition for each pool, so that at every moment some revision has ready workers in both.
//!
//! Workers of different revisions do not hand off to each other. Were the pools rolled independently, the smaller one would be of the new
//! revision before the larger one has a single new worker, and nothing would serve.

use coterie_crds::{names, routing::RoutingDocument, v1alpha1::Pool};

use super::{resolve::Resolved, workers::PodView};

/// Pods with a lower ordinal keep their revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partitions {
    /// Of the prefill pool.
    pub prefill: i32,
    /// Of the decode pool.
    pub decode: i32,
}

struct Progress {
    size: i32,
    max_unavailable: i32,
    /// Ready workers of the wanted revision.
    new: i32,
    /// Ready workers of others.
    old: i32,
}

impl Progress {
    fn of(resolved: &Resolved, pods: &[PodView], role: &str, pool: &Pool) -> Self {
        let ready = |wanted: bool| {
            let is = |p: &&PodView| p.ready && p.role == role && (p.revision == resolved.revision) == wanted;
            i32::try_from(pods.iter().filter(is).count()).unwrap_or(i32::MAX)
        };
        Self {
            size: pool.replicas,
            max_unavailable: pool.update.max_unavailable.max(1),
            new: ready(true),
            old: ready(false),
        }
    }

    /// Workers that may be of the wanted revision now. The last old one stays until requests can do without it.
    fn allowed(&self, old_is_dispensable: bool) -> i32 {
        let next = self.new.saturating_add(self.max_unavailable).min(self.size);
        if old_is_dispensable || self.size <= 1 {
            next
        } else {
            next.min(self.size - 1)
        }
    }
}

/// Decides the partitions. `acknowledged` is the generation of the document that all routers route by.
///
/// Without an old revision that serves there is nothing to protect, and nothing is held back.
pub fn partitions(
    resolved: &Resolved,
    pods: &[PodView],
    document: &RoutingDocument,
    acknowledged: Option<u64>,
) -> Partitions {
    let Some(prefill_pool) = &resolved.spec.prefill else {
        // Workers that do both need no partner: their StatefulSet paces itself.
        return Partitions::default();
    };
    let prefill = Progress::of(resolved, pods, names::ROLE_PREFILL, prefill_pool);
    let decode = Progress::of(resolved, pods, names::ROLE_DECODE, &resolved.spec.decode);
    if prefill.old == 0 || decode.old == 0 {
        return Partitions::default();
    }
    let new_serves = prefill.new > 0
        && decode.new > 0
        && document.revisions.contains(&resolved.revision)
        && acknowledged >= Some(document.generation);
    // Prefill follows decode in ratio: it is done when decode is.
    let share = prefill.size.saturating_mul(decode.new) / decode.size.max(1);
    let prefill_allowed = prefill.allowed(new_serves).min(share.max(1));
    Partitions {
        prefill: (prefill.size - prefill_allowed).max(0),
        decode: (decode.size - decode.allowed(new_serves)).max(0),
    }
}
