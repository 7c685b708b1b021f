//! Whether a fleet answers requests, and whether it does so as declared.

use coterie_crds::{
    conditions::{self, reason},
    names,
};

use super::{
    document::{decoding_revisions, needs_prefill, routable_revisions},
    status::Facts,
    stuck,
    workers::ready_routers,
};
use crate::kube_io::conditions::{Truth, Verdict};

/// What people are told while [`decode_only`] holds.
pub const DECODE_ONLY: &str =
    "no prefill worker of a listed revision is ready: decode workers compute prompts themselves";

/// Whether requests are answered.
pub fn available(facts: &Facts<'_>) -> Verdict {
    let kind = conditions::AVAILABLE;
    let fleet = &facts.resolved.fleet;
    let routers = ready_routers(facts.pods).len();
    if routers == 0 {
        let replicas = facts.resolved.spec.routing.router.replicas;
        let workload = format!("Deployment {}", names::router(&fleet.name));
        let because = stuck::blocking(facts.pods, names::ROLE_ROUTER, &workload, replicas, None).unwrap_or(workload);
        return Verdict::new(
            kind,
            false,
            reason::NO_ROUTER_READY,
            format!("no router is ready; {because}"),
        );
    }
    let service = names::router(&fleet.name);
    let decoding = decoding_revisions(facts.pods);
    if !listed(facts).iter().any(|revision| decoding.contains(revision)) {
        return Verdict::new(
            kind,
            false,
            reason::NO_ROUTABLE_REVISION,
            "no listed revision has a ready decode worker; routers answer 503",
        );
    }
    let message = if decode_only(facts) {
        format!("requests go to Service {service}; {DECODE_ONLY}")
    } else {
        format!("requests go to Service {service}")
    };
    Verdict::new(kind, true, reason::SERVING, message)
}

fn listed<'a>(facts: &Facts<'a>) -> &'a [String] {
    facts.document.map(|d| d.revisions.as_slice()).unwrap_or_default()
}

/// Whether requests are answered although no prefill worker takes part.
pub fn decode_only(facts: &Facts<'_>) -> bool {
    let decoding = decoding_revisions(facts.pods);
    let routable = routable_revisions(facts.pods, needs_prefill(facts.resolved));
    let listed = listed(facts);
    !ready_routers(facts.pods).is_empty()
        && listed.iter().any(|r| decoding.contains(r))
        && !listed.iter().any(|r| routable.contains(r))
}

/// Adds what people should know to a verdict that is not true.
pub fn noted(mut verdict: Verdict, note: Option<&str>) -> Verdict {
    if verdict.truth != Truth::True
        && let Some(note) = note
    {
        verdict.message = format!("{}; {note}", verdict.message);
    }
    verdict
}
