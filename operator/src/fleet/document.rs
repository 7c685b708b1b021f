//! The routing document: decided here, written with the other children. A pure function of the spec, the live workers, the active table and
//! the document that is there.

use std::collections::{BTreeMap, BTreeSet};

use coterie_crds::{
    names,
    routing::{
        Connector, DOCUMENT_VERSION, LocalityBand, Model, PolicyKind, Prefill, PrefillPolicyKind, RoutingDocument,
        Signature, SignatureSource, Statistics, TableRef,
    },
    v1alpha1::{self as api, CentroidTable, Policy, PrefillPolicy},
};
use coterie_locality::assign;

use super::{resolve::Resolved, workers::PodView};

/// The document that should be there.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The document.
    pub document: RoutingDocument,
    /// Whether it differs from the one that is there.
    pub changed: bool,
}

/// Decides the document. `previous` is the one that is there; `highest` the highest generation that anybody is known to have seen.
pub fn decide(
    resolved: &Resolved,
    pods: &[PodView],
    table: Option<&CentroidTable>,
    previous: Option<&RoutingDocument>,
    highest: u64,
) -> Decision {
    let spec = &resolved.spec;
    let table_ref = table.map(|t| TableRef {
        name: t.metadata.name.clone().unwrap_or_default(),
        digest: t.spec.digest.clone(),
        chunks: t.spec.chunks.clone(),
    });
    let mut document = RoutingDocument {
        version: DOCUMENT_VERSION,
        generation: 0,
        deployment: resolved.fleet.to_string(),
        model: Model {
            name: spec.model.name.clone(),
            layers: spec.model.geometry.layers.unsigned_abs(),
            experts: spec.model.geometry.experts.unsigned_abs(),
            top_k: spec.model.geometry.top_k.unsigned_abs(),
        },
        policy: match spec.routing.policy {
            Policy::LocalityBand => PolicyKind::LocalityBand,
            Policy::MarginalCost => PolicyKind::MarginalCost,
            Policy::LeastLoaded => PolicyKind::LeastLoaded,
            Policy::RoundRobin => PolicyKind::RoundRobin,
            Policy::PowerOfTwoChoices => PolicyKind::PowerOfTwoChoices,
        },
        signature: Signature {
            source: match spec.routing.signature.source {
                api::SignatureSource::Auto => SignatureSource::Auto,
                api::SignatureSource::Prefill => SignatureSource::Prefill,
                api::SignatureSource::Text => SignatureSource::Text,
            },
        },
        locality_band: LocalityBand {
            tau: resolved.tau,
            min_candidates: spec.routing.locality_band.min_candidates.unsigned_abs(),
            max_load_ratio: resolved.max_load_ratio,
        },
        prefill: Prefill {
            policy: match spec.routing.prefill.policy {
                PrefillPolicy::PrefixHash => PrefillPolicyKind::PrefixHash,
                PrefillPolicy::LeastLoaded => PrefillPolicyKind::LeastLoaded,
            },
            prefix_bytes: spec.routing.prefill.prefix_bytes.unsigned_abs(),
            load_factor: resolved.load_factor,
        },
        assignment: table.map(|t| assignment(resolved, t, previous)).unwrap_or_default(),
        table: table_ref,
        revisions: revisions(resolved, pods, previous),
        disaggregated: spec.prefill.is_some(),
        connector: match spec.engine.transfer.connector {
            api::Connector::Nixl => Connector::Nixl,
            api::Connector::None => Connector::None,
        },
        statistics: Statistics {
            window_ms: resolved.window_ms,
            max_samples: spec.calibration.samples.unsigned_abs(),
        },
    };
    let seen = previous.map_or(0, |p| p.generation);
    document.generation = seen;
    let changed = previous != Some(&document);
    if changed {
        document.generation = seen.max(highest).saturating_add(1);
    }
    Decision { document, changed }
}

/// Cluster of each decode worker. What the previous document says under the same table is kept, so that a change of size moves little.
/// The document holds one cluster a worker; routers place clusters that are left over by the same function.
fn assignment(resolved: &Resolved, table: &CentroidTable, previous: Option<&RoutingDocument>) -> BTreeMap<String, u32> {
    let pool = names::decode_pool(&resolved.fleet.name);
    let mut workers: Vec<String> = (0..resolved.spec.decode.replicas)
        .map(|ordinal| format!("{pool}-{ordinal}"))
        .collect();
    workers.sort();
    let clusters = usize::try_from(table.spec.clusters).unwrap_or(0);
    let stated: Vec<f64> = table
        .spec
        .baselines
        .cluster_shares
        .iter()
        .filter_map(|s| s.parse().ok())
        .filter(|s: &f64| s.is_finite())
        .collect();
    let shares = if stated.len() == clusters {
        stated
    } else {
        vec![1.0; clusters]
    };
    let known: BTreeMap<String, Vec<u32>> = previous
        .filter(|p| p.table.as_ref().is_some_and(|t| t.digest == table.spec.digest))
        .map(|p| {
            p.assignment
                .iter()
                .map(|(worker, cluster)| (worker.clone(), vec![*cluster]))
                .collect()
        })
        .unwrap_or_default();
    let assigned = assign(&shares, &workers, &known);
    workers
        .into_iter()
        .enumerate()
        .filter_map(|(index, worker)| {
            let clusters = assigned.clusters_of(index);
            let kept = known
                .get(&worker)
                .and_then(|k| k.first())
                .filter(|k| clusters.contains(k));
            let cluster = *kept.or(clusters.first())?;
            Some((worker, cluster))
        })
        .collect()
}

/// Revisions that may be routed to, the wanted one first.
///
/// A revision is listed once it has a ready worker in each declared pool. An old one leaves when it no longer has, or when the wanted one
/// is rolled out completely. While no revision has, those with ready decode workers serve: routers let these compute prompts themselves.
/// The wanted one, once listed, stays as long as nothing better is there: its workers may come back any moment.
fn revisions(resolved: &Resolved, pods: &[PodView], previous: Option<&RoutingDocument>) -> Vec<String> {
    let routable = routable_revisions(pods, needs_prefill(resolved));
    let wanted = &resolved.revision;
    if rolled_out(resolved, pods) && routable.contains(wanted) {
        return vec![wanted.clone()];
    }
    if !routable.is_empty() {
        return wanted_first(routable, wanted);
    }
    let decoding = decoding_revisions(pods);
    let before = previous.map(|p| p.revisions.as_slice()).unwrap_or_default();
    let kept: Vec<String> = before.iter().filter(|r| decoding.contains(*r)).cloned().collect();
    if !kept.is_empty() {
        return kept;
    }
    if !decoding.is_empty() {
        return wanted_first(decoding, wanted);
    }
    before.iter().filter(|r| *r == wanted).cloned().collect()
}

fn wanted_first(revisions: BTreeSet<String>, wanted: &str) -> Vec<String> {
    let (mut listed, others): (Vec<String>, Vec<String>) = revisions.into_iter().partition(|r| r == wanted);
    listed.extend(others);
    listed
}

/// Whether a revision needs a ready prefill worker to serve as declared. A pool of no workers asks for none.
pub fn needs_prefill(resolved: &Resolved) -> bool {
    resolved.spec.prefill.as_ref().is_some_and(|pool| pool.replicas > 0)
}

/// Revisions with a ready worker in each pool that should have workers.
pub fn routable_revisions(pods: &[PodView], needs_prefill: bool) -> BTreeSet<String> {
    let decode = decoding_revisions(pods);
    if needs_prefill {
        let prefill = ready_revisions(pods, names::ROLE_PREFILL);
        decode.intersection(&prefill).cloned().collect()
    } else {
        decode
    }
}

/// Revisions with a ready decode worker: the least that answers a request.
pub fn decoding_revisions(pods: &[PodView]) -> BTreeSet<String> {
    ready_revisions(pods, names::ROLE_DECODE)
}

fn ready_revisions(pods: &[PodView], role: &str) -> BTreeSet<String> {
    pods.iter()
        .filter(|p| p.ready && p.role == role && !p.revision.is_empty())
        .map(|p| p.revision.clone())
        .collect()
}

/// Whether every declared worker is there, ready, and of the wanted revision.
fn rolled_out(resolved: &Resolved, pods: &[PodView]) -> bool {
    let count = |role: &str| {
        pods.iter()
            .filter(|p| p.ready && p.role == role && p.revision == resolved.revision)
            .count()
    };
    let wants = |replicas: i32| usize::try_from(replicas).unwrap_or(0);
    let prefill = resolved.spec.prefill.as_ref().map_or(0, |p| wants(p.replicas));
    count(names::ROLE_DECODE) >= wants(resolved.spec.decode.replicas) && count(names::ROLE_PREFILL) >= prefill
}
