//! The fleet controller's part of the status: derived from live pods and workloads, never from the spec alone.

use coterie_crds::{
    conditions::{self, reason},
    names,
    routing::RoutingDocument,
    v1alpha1::{Images, MoEDeploymentStatus, Pool, PoolStatus, RouterStatus},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Serialize;

use super::{
    acknowledgement::Acknowledgement,
    observe::Workloads,
    resolve::Resolved,
    serving::{DECODE_ONLY, available, decode_only, noted},
    stuck,
    workers::{PodView, ready_routers},
};
use crate::kube_io::conditions::{Transition, Truth, Verdict, merge, owned};

/// Condition types that this controller owns.
pub const KINDS: [&str; 5] = [
    conditions::AVAILABLE,
    conditions::PREFILL_AVAILABLE,
    conditions::DECODE_AVAILABLE,
    conditions::PROGRESSING,
    conditions::READY,
];

/// The fields that this controller owns.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
    conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefill: Option<PoolStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decode: Option<PoolStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    router: Option<RouterStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    images: Option<Images>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selector: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
}

impl FleetStatus {
    /// What the status says now.
    pub fn current(status: &MoEDeploymentStatus) -> Self {
        Self {
            observed_generation: status.observed_generation,
            conditions: owned(&status.conditions, &KINDS),
            prefill: status.prefill.clone(),
            decode: status.decode.clone(),
            router: status.router.clone(),
            images: status.images.clone(),
            selector: status.selector.clone(),
            revision: status.revision.clone(),
        }
    }
}

/// What the status is derived from.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The resolved spec.
    pub resolved: &'a Resolved,
    /// Live pods.
    pub pods: &'a [PodView],
    /// Live workloads.
    pub workloads: &'a Workloads,
    /// The document that is there.
    pub document: Option<&'a RoutingDocument>,
    /// What routers said, if they were asked.
    pub acknowledgement: Option<&'a Acknowledgement>,
    /// Why a child could not be written.
    pub failure: Option<&'a str>,
}

/// A derived status and the transitions in it.
pub type Derived = (FleetStatus, Vec<Transition>);

/// Derives the status.
pub fn derive(facts: &Facts<'_>, current: &MoEDeploymentStatus, now: &Time) -> Derived {
    let resolved = facts.resolved;
    let spec = &resolved.spec;
    let prefill = spec
        .prefill
        .as_ref()
        .map(|pool| PoolFacts::of(facts, pool, names::ROLE_PREFILL));
    let decode = PoolFacts::of(facts, &spec.decode, names::ROLE_DECODE);
    let router = router_status(facts, current);
    let available = available(facts);
    let note = decode_only(facts).then_some(DECODE_ONLY);
    let mut verdicts = vec![available.clone()];
    if let Some(prefill) = &prefill {
        verdicts.push(noted(prefill.available(conditions::PREFILL_AVAILABLE), note));
    }
    verdicts.push(decode.available(conditions::DECODE_AVAILABLE));
    let blocking = blocking(facts, prefill.as_ref(), &decode, &available);
    verdicts.push(progressing(facts, prefill.as_ref(), &decode));
    verdicts.push(noted(ready(facts, blocking), note));
    let (conditions, transitions) = merge(&current.conditions, &verdicts, resolved.generation, now);
    let status = FleetStatus {
        observed_generation: resolved.generation,
        conditions,
        prefill: prefill.map(|p| p.status),
        decode: Some(decode.status),
        router: Some(router),
        images: Some(resolved.images.clone()),
        selector: Some(
            resolved
                .fleet
                .selector(names::ROLE_DECODE)
                .iter()
                .map(|(k, v)| format!("{k}={v}"))
                .collect::<Vec<_>>()
                .join(","),
        ),
        revision: Some(resolved.revision.clone()),
    };
    (status, transitions)
}

/// The status of a spec that cannot be carried out: everything observed stays, Ready says what to change.
pub fn refused(current: &MoEDeploymentStatus, generation: Option<i64>, message: &str, now: &Time) -> Derived {
    let verdict = Verdict::new(conditions::READY, false, reason::INVALID_SPEC, message);
    let (ready, transitions) = merge(&current.conditions, &[verdict], generation, now);
    let mut status = FleetStatus::current(current);
    status.conditions.retain(|c| c.type_ != conditions::READY);
    status.conditions.extend(ready);
    status.observed_generation = generation;
    (status, transitions)
}

struct PoolFacts {
    status: PoolStatus,
    role: &'static str,
    max_unavailable: i32,
    blocking: Option<String>,
    /// Whether something says why a pod does not become ready.
    troubled: bool,
    /// Whether the workload's controller has seen our last write.
    observed: bool,
}

impl PoolFacts {
    fn of(facts: &Facts<'_>, pool: &Pool, role: &'static str) -> Self {
        let fleet = &facts.resolved.fleet;
        let (name, set) = if role == names::ROLE_PREFILL {
            (names::prefill_pool(&fleet.name), facts.workloads.prefill.as_ref())
        } else {
            (names::decode_pool(&fleet.name), facts.workloads.decode.as_ref())
        };
        let pods: Vec<&PodView> = facts.pods.iter().filter(|p| p.role == role).collect();
        let count = |wanted: &dyn Fn(&PodView) -> bool| {
            i32::try_from(pods.iter().filter(|p| wanted(p)).count()).unwrap_or(i32::MAX)
        };
        let ready = count(&|p| p.ready);
        // A pod may carry the wanted revision and an older template still: the revision is only part of the template.
        let newest = set
            .and_then(|s| s.status.as_ref())
            .and_then(|s| s.update_revision.clone());
        let updated = count(&|p| {
            !p.terminating && p.revision == facts.resolved.revision && newest.as_ref().is_none_or(|n| *n == p.template)
        });
        let observed = set
            .is_some_and(|s| s.status.as_ref().and_then(|status| status.observed_generation) >= s.metadata.generation);
        Self {
            status: PoolStatus {
                desired: pool.replicas,
                replicas: count(&|p| !p.terminating),
                ready,
                updated,
                summary: format!("{ready}/{}", pool.replicas),
            },
            role,
            max_unavailable: pool.update.max_unavailable,
            troubled: facts.workloads.refusals.contains_key(&name) || stuck::has_trouble(facts.pods, role),
            blocking: facts
                .workloads
                .refusals
                .get(&name)
                .map(|why| format!("StatefulSet {name} cannot create pods: {why}"))
                .or_else(|| {
                    stuck::blocking(
                        facts.pods,
                        role,
                        &format!("StatefulSet {name}"),
                        pool.replicas,
                        Some(&facts.resolved.revision),
                    )
                }),
            observed,
        }
    }

    fn settled(&self) -> bool {
        let status = &self.status;
        self.observed
            && status.ready >= status.desired
            && status.updated >= status.desired
            && status.replicas == status.desired
    }

    /// Reason and sentence for a pool that is not as declared.
    fn unsettled(&self) -> (&'static str, String) {
        let PoolStatus {
            desired,
            ready,
            updated,
            replicas,
            ..
        } = self.status;
        let role = self.role;
        let counts = if ready < desired {
            format!("{ready} of {desired} {role} workers are ready")
        } else if updated < desired {
            format!("{updated} of {desired} {role} workers run the newest spec")
        } else if replicas > desired {
            format!("{replicas} {role} workers exist, {desired} wanted")
        } else {
            format!("StatefulSet controller has not seen the newest spec of the {role} pool")
        };
        let because = self.blocking.as_ref().map(|b| format!("; {b}")).unwrap_or_default();
        let reason = if ready < desired {
            reason::TOO_FEW_READY
        } else {
            reason::ROLLING_OUT
        };
        (reason, format!("{counts}{because}"))
    }

    fn available(&self, kind: &'static str) -> Verdict {
        let PoolStatus { desired, ready, .. } = self.status;
        let needed = desired.saturating_sub(self.max_unavailable).max(i32::from(desired > 0));
        let message = format!("{ready} of {desired} {} workers are ready", self.role);
        if ready >= needed {
            return Verdict::new(kind, true, reason::ENOUGH_READY, message);
        }
        let because = self.blocking.as_ref().map(|b| format!("; {b}")).unwrap_or_default();
        Verdict::new(
            kind,
            false,
            reason::TOO_FEW_READY,
            format!("{message}, {needed} needed{because}"),
        )
    }
}

fn router_status(facts: &Facts<'_>, current: &MoEDeploymentStatus) -> RouterStatus {
    let before = current.router.as_ref();
    let written = facts.document.map(|d| d.generation as i64);
    let acknowledged = facts
        .acknowledgement
        .and_then(|a| a.generation)
        .map(|g| g as i64)
        .or_else(|| before.and_then(|r| r.acknowledged_generation));
    RouterStatus {
        desired: facts.resolved.spec.routing.router.replicas,
        ready: i32::try_from(ready_routers(facts.pods).len()).unwrap_or(i32::MAX),
        generation: written,
        acknowledged_generation: acknowledged,
    }
}

/// The first object that keeps the fleet from being as declared.
fn blocking(
    facts: &Facts<'_>,
    prefill: Option<&PoolFacts>,
    decode: &PoolFacts,
    available: &Verdict,
) -> Option<(&'static str, String)> {
    if let Some(failure) = facts.failure {
        return Some((reason::APPLY_FAILED, failure.to_owned()));
    }
    let unsettled: Vec<&PoolFacts> = prefill.into_iter().chain([decode]).filter(|p| !p.settled()).collect();
    // A pool whose pods say what is wrong comes before one that is only on its way.
    let worst = unsettled.iter().find(|p| p.troubled).or(unsettled.first());
    if let Some(pool) = worst {
        return Some(pool.unsettled());
    }
    if !router_settled(facts) {
        let fleet = &facts.resolved.fleet;
        let replicas = facts.resolved.spec.routing.router.replicas;
        let ready = ready_routers(facts.pods).len();
        let workload = format!("Deployment {}", names::router(&fleet.name));
        let because = stuck::blocking(facts.pods, names::ROLE_ROUTER, &workload, replicas, None)
            .map(|b| format!("; {b}"))
            .unwrap_or_default();
        return Some((
            reason::ROLLING_OUT,
            format!("{ready} of {replicas} routers are ready and of the newest spec{because}"),
        ));
    }
    if available.truth != Truth::True {
        return Some((available.reason, available.message.clone()));
    }
    None
}

fn router_settled(facts: &Facts<'_>) -> bool {
    let wanted = facts.resolved.spec.routing.router.replicas;
    let Some(deployment) = &facts.workloads.router else {
        return false;
    };
    let Some(status) = &deployment.status else {
        return false;
    };
    status.observed_generation >= deployment.metadata.generation
        && status.updated_replicas.unwrap_or(0) == wanted
        && status.replicas.unwrap_or(0) == wanted
        && i32::try_from(ready_routers(facts.pods).len()).unwrap_or(i32::MAX) >= wanted
}

fn progressing(facts: &Facts<'_>, prefill: Option<&PoolFacts>, decode: &PoolFacts) -> Verdict {
    let kind = conditions::PROGRESSING;
    let moving: Vec<String> = prefill
        .into_iter()
        .chain([decode])
        .filter(|p| !p.settled())
        .map(|p| format!("{} {} of {} updated", p.role, p.status.updated, p.status.desired))
        .chain((!router_settled(facts)).then(|| "routers".to_owned()))
        .collect();
    if moving.is_empty() {
        Verdict::new(kind, false, reason::SETTLED, "nothing changes")
    } else {
        let revision = &facts.resolved.revision;
        Verdict::new(
            kind,
            true,
            reason::ROLLING_OUT,
            format!("revision {revision}: {}", moving.join(", ")),
        )
    }
}

fn ready(facts: &Facts<'_>, blocking: Option<(&'static str, String)>) -> Verdict {
    match blocking {
        Some((reason, message)) => Verdict::new(conditions::READY, false, reason, message),
        None => Verdict::new(
            conditions::READY,
            true,
            reason::AS_DECLARED,
            format!("all workers and routers run revision {}", facts.resolved.revision),
        ),
    }
}
