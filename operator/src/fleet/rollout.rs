//! How far a rollout may go: a partition for each pool, so that at every moment some revision has ready workers in both
//! (or, where there is one prefill worker only, ready decode workers that compute prompts while it is replaced).
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

/// A place in a pool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A ready worker of the wanted revision.
    New,
    /// A ready worker of another.
    Old,
    /// Nobody ready, and nothing says that this will last: a pod is starting, stopping, or about to be made.
    Away,
    /// A pod that says why it does not get ready. Only a change may help it.
    Stuck,
}

struct Progress {
    size: i32,
    max_unavailable: i32,
    /// By ordinal.
    places: Vec<Place>,
    /// Ready workers of the wanted revision.
    new: i32,
    /// Ready workers of others.
    old: i32,
    /// Workers of the wanted revision, ready or not.
    begun: i32,
}

impl Progress {
    fn of(resolved: &Resolved, pods: &[PodView], role: &str, pool: &Pool) -> Self {
        let count = |is: &dyn Fn(&PodView) -> bool| {
            i32::try_from(pods.iter().filter(|p| p.role == role && is(p)).count()).unwrap_or(i32::MAX)
        };
        let wanted = |p: &PodView| p.revision == resolved.revision;
        let mut places = vec![Place::Away; usize::try_from(pool.replicas).unwrap_or(0)];
        for pod in pods.iter().filter(|p| p.role == role) {
            let Some(place) = ordinal(&pod.name).and_then(|o| places.get_mut(o)) else {
                continue;
            };
            *place = match (pod.ready, wanted(pod)) {
                (true, true) => Place::New,
                (true, false) => Place::Old,
                (false, _) if pod.trouble.is_some() && !pod.terminating => Place::Stuck,
                (false, _) => Place::Away,
            };
        }
        Self {
            size: pool.replicas,
            max_unavailable: pool.update.max_unavailable.max(1),
            places,
            new: count(&|p| p.ready && wanted(p)),
            old: count(&|p| p.ready && !wanted(p)),
            begun: count(&wanted),
        }
    }

    /// The partition that lets so many workers be of the wanted revision.
    fn partition(&self, allowed: i32) -> i32 {
        (self.size - allowed).max(0)
    }

    /// Workers that may be of the wanted revision now. The last old one stays until requests can do without it.
    fn allowed(&self, old_is_dispensable: bool) -> i32 {
        let next = self.new.saturating_add(self.max_unavailable).min(self.size);
        let next = if old_is_dispensable || self.size <= 1 {
            next
        } else {
            next.min(self.size - 1)
        };
        (0..=next)
            .rev()
            .find(|allowed| self.keeps_enough(*allowed))
            .unwrap_or(0)
    }

    /// Whether no more than `max_unavailable` workers are away when those `allowed` are taken down. Who is stuck does not count: a change
    /// made to help them must not wait for them.
    fn keeps_enough(&self, allowed: i32) -> bool {
        let first = usize::try_from(self.partition(allowed)).unwrap_or(0);
        let taken = self.places.iter().skip(first).filter(|p| **p == Place::Old).count();
        let away = self.places.iter().filter(|p| **p == Place::Away).count();
        taken == 0 || taken + away <= usize::try_from(self.max_unavailable).unwrap_or(1)
    }
}

/// The number at the end of a StatefulSet pod's name.
fn ordinal(name: &str) -> Option<usize> {
    name.rsplit_once('-')?.1.parse().ok()
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
    let spec = &resolved.spec;
    let decode = Progress::of(resolved, pods, names::ROLE_DECODE, &spec.decode);
    if decode.old == 0 {
        return Partitions::default();
    }
    let prefill = spec
        .prefill
        .as_ref()
        .filter(|pool| pool.replicas > 0)
        .map(|pool| Progress::of(resolved, pods, names::ROLE_PREFILL, pool));
    let new_serves = decode.new > 0
        && prefill.as_ref().is_none_or(|p| p.new > 0)
        && document.revisions.contains(&resolved.revision)
        && acknowledged >= Some(document.generation);
    let paced_decode = decode.partition(decode.allowed(new_serves));
    let Some(prefill) = prefill else {
        return Partitions {
            prefill: 0,
            decode: paced_decode,
        };
    };
    if prefill.new == 0 && (prefill.size == 1 || prefill.old == 0) {
        // While no prefill worker is ready, old decode workers compute prompts too: none of them goes at the same time.
        return Partitions {
            prefill: 0,
            decode: decode.partition(decode.begun),
        };
    }
    if prefill.old == 0 {
        return Partitions {
            prefill: 0,
            decode: paced_decode,
        };
    }
    // Prefill follows decode in ratio: it is done when decode is.
    let share = prefill.size.saturating_mul(decode.new) / decode.size.max(1);
    let prefill_allowed = prefill.allowed(new_serves).min(share.max(1));
    Partitions {
        prefill: prefill.partition(prefill_allowed),
        decode: paced_decode,
    }
}
