//! The view: which workers a request may go to, worked out once per change.

use std::{collections::BTreeMap, sync::Arc};

use coterie_crds::admin;
use coterie_locality::{
    Assignment, Source, assign,
    prefix_hash::{Overflow, PrefixRing},
};

use super::Active;
use crate::worker::{Role, Worker, WorkerSpec};

/// A known worker, routable or not.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) spec: WorkerSpec,
    pub(crate) worker: Arc<Worker>,
}

/// A decode worker that may be chosen, and the clusters it carries.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) worker: Arc<Worker>,
    /// Of source Prefill.
    clusters: Vec<u32>,
    /// Of source Text.
    text_clusters: Vec<u32>,
}

impl Target {
    /// Clusters of a source that it carries.
    pub(crate) fn clusters(&self, source: Source) -> &[u32] {
        match source {
            Source::Prefill => &self.clusters,
            Source::Text => &self.text_clusters,
        }
    }
}

/// One consistent state of document, table and workers.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) active: Option<Arc<Active>>,
    /// All known workers, sorted by role and name.
    pub(crate) members: Vec<Member>,
    /// Routable prefill workers, sorted by name.
    pub(crate) prefill: Vec<Arc<Worker>>,
    /// Prefix ring over `prefill`.
    pub(crate) ring: Option<Arc<PrefixRing>>,
    /// Routable decode workers, sorted by name.
    pub(crate) decode: Vec<Target>,
}

impl View {
    /// `previous` lends its ring where the prefill workers are the same.
    pub(crate) fn new(active: Option<Arc<Active>>, members: Vec<Member>, previous: &Self) -> Self {
        let routable = |role: Role| {
            members
                .iter()
                .filter(move |m| m.spec.role == role)
                .filter(|m| unroutable(active.as_deref(), &m.spec).is_none())
                .map(|m| Arc::clone(&m.worker))
        };
        let decode: Vec<Arc<Worker>> = routable(Role::Decode).collect();
        // A prefill worker whose revision has no decode worker could hand off to nobody.
        let prefill: Vec<Arc<Worker>> = routable(Role::Prefill)
            .filter(|p| decode.iter().any(|d| d.revision == p.revision))
            .collect();
        let ring = ring(active.as_deref(), &prefill, previous);
        let decode = place(active.as_deref(), decode);
        Self {
            active,
            members,
            prefill,
            ring,
            decode,
        }
    }

    /// All known workers of a role that have an address.
    pub(crate) fn workers(&self, role: Role) -> Vec<Arc<Worker>> {
        let known = self.members.iter().filter(|m| m.spec.role == role);
        known
            .filter(|m| !m.spec.address.is_empty())
            .map(|m| Arc::clone(&m.worker))
            .collect()
    }

    /// The fleet as the admin port shows it.
    pub(crate) fn fleet(&self, now_ms: u64) -> admin::Fleet {
        let mut workers: Vec<admin::Worker> = self
            .members
            .iter()
            .map(|member| {
                let (spec, worker) = (&member.spec, &member.worker);
                let reason = unroutable(self.active.as_deref(), spec)
                    .or_else(|| (!worker.available(now_ms)).then_some("Ejected: connections or answers fail"));
                let target = self.decode.iter().find(|t| Arc::ptr_eq(&t.worker, worker));
                admin::Worker {
                    name: spec.name.clone(),
                    role: spec.role.as_str().to_owned(),
                    address: spec.address.clone(),
                    revision: spec.revision.clone(),
                    routable: reason.is_none(),
                    reason: reason.map(str::to_owned),
                    own: worker.own(),
                    reported: worker.report(now_ms),
                    clusters: target.map(|t| t.clusters.clone()).unwrap_or_default(),
                    text_clusters: target.map(|t| t.text_clusters.clone()).unwrap_or_default(),
                }
            })
            .collect();
        workers.sort_by(|a, b| a.name.cmp(&b.name));
        admin::Fleet { workers }
    }
}

/// Why no request may go to a worker.
fn unroutable(active: Option<&Active>, spec: &WorkerSpec) -> Option<&'static str> {
    if let Some(reason) = spec.unready {
        return Some(reason);
    }
    if spec.address.is_empty() {
        return Some("NoAddress");
    }
    match active {
        None => Some("NoRoutingDocument"),
        Some(active) if !active.document.revisions.contains(&spec.revision) => Some("RevisionNotListed"),
        Some(_) => None,
    }
}

fn ring(active: Option<&Active>, prefill: &[Arc<Worker>], previous: &View) -> Option<Arc<PrefixRing>> {
    let factor = active?.document.prefill.load_factor;
    let same_workers = prefill
        .iter()
        .map(|w| &w.name)
        .eq(previous.prefill.iter().map(|w| &w.name));
    let same_factor = previous
        .active
        .as_ref()
        .is_some_and(|a| a.document.prefill.load_factor == factor);
    if let Some(ring) = &previous.ring
        && same_workers
        && same_factor
    {
        return Some(Arc::clone(ring));
    }
    let names: Vec<&str> = prefill.iter().map(|w| w.name.as_str()).collect();
    PrefixRing::new(&names, f64::from(factor), Overflow::WalkRing)
        .ok()
        .map(Arc::new)
}

/// Gives every decode worker its clusters: the document's word, and for the rest the function that all routers share. Clusters of the two
/// sources have nothing to do with each other; the same word serves both, so that what a change of size leaves in place stays for both.
fn place(active: Option<&Active>, decode: Vec<Arc<Worker>>) -> Vec<Target> {
    let names: Vec<&str> = decode.iter().map(|w| w.name.as_str()).collect();
    let known: BTreeMap<String, Vec<u32>> = active
        .map(|a| a.document.assignment.iter())
        .into_iter()
        .flatten()
        .map(|(name, cluster)| (name.clone(), vec![*cluster]))
        .collect();
    let assigned = |source| {
        let part = active?.table.as_ref()?.table.source(source)?;
        Some(assign(&part.cluster_shares(), &names, &known))
    };
    let (prefill, text) = (assigned(Source::Prefill), assigned(Source::Text));
    let of = |assignment: &Option<Assignment>, index| {
        let clusters = assignment.as_ref().map(|a| a.clusters_of(index).to_vec());
        clusters.unwrap_or_default()
    };
    decode
        .into_iter()
        .enumerate()
        .map(|(index, worker)| Target {
            worker,
            clusters: of(&prefill, index),
            text_clusters: of(&text, index),
        })
        .collect()
}
