//! The drift controller's part of the status.

use coterie_crds::{
    conditions::{self, reason},
    v1alpha1::{DriftStatus, MoEDeploymentStatus, SignalStatus, SignatureStatus},
};
use coterie_locality::drift::{Signal, SignalState, Signals, Verdict as Judgement};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Serialize;

use super::coverage::Coverage;
use crate::kube_io::conditions::{Transition, Truth, Verdict, merge, owned};

/// Condition types that this controller owns.
pub const KINDS: [&str; 2] = [conditions::DRIFTED, conditions::SIGNATURES_AVAILABLE];

/// The fields that this controller owns.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnStatus {
    conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<SignatureStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<DriftStatus>,
}

impl OwnStatus {
    /// What the status says now.
    pub fn current(status: &MoEDeploymentStatus) -> Self {
        Self {
            conditions: owned(&status.conditions, &KINDS),
            signature: status.signature.clone(),
            drift: status.drift.clone(),
        }
    }
}

/// What is known of the traffic.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// The spec switched the judgement off.
    Off,
    /// Nothing can be said, and why.
    Unknown(String),
    /// A window was judged.
    Judged(Signals, Judgement),
}

/// Derives the status. `coverage` is that of the newest window, if routers answered; `refit` the time of a run started just now.
pub fn derive(
    seen: &Seen,
    coverage: Option<&Coverage>,
    refit: Option<Time>,
    generation: Option<i64>,
    current: &MoEDeploymentStatus,
    now: &Time,
) -> (OwnStatus, Vec<Transition>) {
    let mut verdicts = vec![drifted(seen)];
    let covered = coverage.map(Coverage::verdict);
    let signature = match (coverage, &covered) {
        (Some(coverage), Some(verdict)) if coverage.share().is_some() => Some(SignatureStatus {
            source: coverage.source().to_owned(),
            reason: verdict.reason.to_owned(),
        }),
        _ => current.signature.clone(),
    };
    verdicts.extend(covered);
    let (mut conditions, transitions) = merge(&current.conditions, &verdicts, generation, now);
    if conditions.len() < KINDS.len() {
        // Routers did not answer: what was known of signatures stays.
        conditions.extend(owned(&current.conditions, &[conditions::SIGNATURES_AVAILABLE]));
    }
    let before = current.drift.as_ref();
    let word = word(seen);
    let same_verdict = before.filter(|b| b.verdict == word);
    let fresh = signals(seen);
    let same_states = same_verdict.filter(|b| states(&b.signals) == states(&fresh));
    let drift = DriftStatus {
        verdict: word.to_owned(),
        since: Some(
            same_verdict
                .and_then(|b| b.since.clone())
                .unwrap_or_else(|| now.clone()),
        ),
        last_refit_time: refit.or_else(|| before.and_then(|b| b.last_refit_time.clone())),
        // Live numbers move with every slide; the status shows those of the last change, metrics show all.
        signals: same_states.map_or(fresh, |b| b.signals.clone()),
    };
    let status = OwnStatus {
        conditions,
        signature,
        drift: Some(drift),
    };
    (status, transitions)
}

fn word(seen: &Seen) -> &'static str {
    match seen {
        Seen::Off => "Off",
        Seen::Unknown(_) | Seen::Judged(_, Judgement::InsufficientSamples) => "Unknown",
        Seen::Judged(_, Judgement::Stable) => "Stable",
        Seen::Judged(_, Judgement::Suspected) => "Suspected",
        Seen::Judged(_, Judgement::Drifted) => "Drifted",
    }
}

fn drifted(seen: &Seen) -> Verdict {
    let kind = conditions::DRIFTED;
    match seen {
        Seen::Off => Verdict::new(kind, Truth::Unknown, reason::SWITCHED_OFF, "spec.drift.mode is Off"),
        Seen::Unknown(why) => Verdict::new(kind, Truth::Unknown, reason::INSUFFICIENT_SAMPLES, why.clone()),
        Seen::Judged(_, Judgement::InsufficientSamples) => Verdict::new(
            kind,
            Truth::Unknown,
            reason::INSUFFICIENT_SAMPLES,
            "too few requests with a signature in the window",
        ),
        Seen::Judged(_, Judgement::Stable) => {
            Verdict::new(kind, false, reason::TRAFFIC_FITS, "live traffic fits the active table")
        }
        Seen::Judged(_, Judgement::Suspected) => Verdict::new(
            kind,
            false,
            reason::TRAFFIC_FITS,
            "a signal is past its threshold, not for long enough yet",
        ),
        Seen::Judged(signals, Judgement::Drifted) => {
            let skewed = signals.skew.state == SignalState::On;
            if skewed && signals.fit.state != SignalState::On {
                Verdict::new(
                    kind,
                    true,
                    reason::SKEW_ROSE,
                    "the busiest cluster takes far more traffic than at the fit",
                )
            } else {
                Verdict::new(
                    kind,
                    true,
                    reason::FIT_DROPPED,
                    "live traffic is far from every centroid of the active table",
                )
            }
        }
    }
}

fn signals(seen: &Seen) -> Vec<SignalStatus> {
    match seen {
        Seen::Judged(signals, _) => vec![
            signal("CentroidFit", &signals.fit, "mean similarity to the nearest centroid"),
            signal("ClusterSkew", &signals.skew, "busiest cluster's share x K"),
        ],
        Seen::Off | Seen::Unknown(_) => Vec::new(),
    }
}

fn signal(name: &str, signal: &Signal, meaning: &str) -> SignalStatus {
    let known = matches!(signal.state, SignalState::On | SignalState::Off);
    let (state, message) = match signal.state {
        SignalState::On => ("On", format!("{meaning}; threshold {:.2}", signal.threshold)),
        SignalState::Off => ("Off", format!("{meaning}; threshold {:.2}", signal.threshold)),
        SignalState::InsufficientSamples => ("Unknown", "too few requests with a signature".to_owned()),
        SignalState::NotAvailable => (
            "Unknown",
            "the active table has no baseline for it, or one cluster only".to_owned(),
        ),
    };
    SignalStatus {
        name: name.to_owned(),
        state: state.to_owned(),
        live: known.then(|| format!("{:.2}", signal.live)),
        baseline: known.then(|| format!("{:.2}", signal.baseline)),
        message: Some(message),
    }
}

fn states(signals: &[SignalStatus]) -> Vec<(&str, &str)> {
    signals.iter().map(|s| (s.name.as_str(), s.state.as_str())).collect()
}
