use coterie_crds::v1alpha1::MoEDeploymentStatus;
use coterie_locality::drift::{Signal, SignalState, Signals, SlideSummary, Verdict as Judgement};

use crate::{
    drift::{
        coverage::Coverage,
        status::{OwnStatus, Seen, derive},
        window::Combined,
    },
    testing::at,
};

fn signals(skew: SignalState, live: f64) -> Signals {
    let signal = |state, live, baseline| Signal {
        state,
        live,
        baseline,
        threshold: 2.4,
        margin: 0.1,
    };
    Signals {
        requests: 400,
        signed: 400,
        fit: signal(SignalState::Off, 0.8, 0.8),
        skew: signal(skew, live, 1.2),
    }
}

fn apply(seen: &Seen, current: &MoEDeploymentStatus, second: i64) -> (MoEDeploymentStatus, OwnStatus) {
    let (own, _) = derive(seen, None, None, Some(1), current, &at(second));
    let status = serde_json::from_value(serde_json::to_value(&own).unwrap()).unwrap();
    (status, own)
}

#[test]
fn live_numbers_alone_change_no_status() {
    let judged = |live| Seen::Judged(signals(SignalState::Off, live), Judgement::Stable);
    let (first, own) = apply(&judged(1.1), &MoEDeploymentStatus::default(), 1);
    let (_, same) = apply(&judged(1.3), &first, 2);
    assert_eq!(own, same);
    let drift = first.drift.unwrap();
    assert_eq!((drift.verdict.as_str(), drift.since), ("Stable", Some(at(1))));
    assert_eq!(drift.signals[1].live.as_deref(), Some("1.10"));
}

#[test]
fn a_new_verdict_changes_the_time_and_the_numbers() {
    let (first, _) = apply(
        &Seen::Judged(signals(SignalState::Off, 1.1), Judgement::Stable),
        &MoEDeploymentStatus::default(),
        1,
    );
    let drifted = Seen::Judged(signals(SignalState::On, 3.2), Judgement::Drifted);
    let (second, _) = apply(&drifted, &first, 5);
    let condition = second.conditions.iter().find(|c| c.type_ == "Drifted").unwrap();
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("True", "SkewRose")
    );
    let drift = second.drift.unwrap();
    assert_eq!((drift.verdict.as_str(), drift.since), ("Drifted", Some(at(5))));
    assert_eq!(drift.signals[1].live.as_deref(), Some("3.20"));
}

#[test]
fn silence_is_unknown_and_never_drift() {
    let (status, _) = apply(
        &Seen::Unknown("router r does not answer".into()),
        &MoEDeploymentStatus::default(),
        1,
    );
    let condition = &status.conditions[0];
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("Unknown", "InsufficientSamples")
    );
    assert!(status.drift.unwrap().signals.is_empty());
}

#[test]
fn the_source_of_signatures_is_shown_and_stays_while_nobody_says() {
    let combined = Combined {
        summaries: Vec::new(),
        text: vec![SlideSummary {
            slide: 7,
            signed: 30,
            ..SlideSummary::default()
        }],
        last_complete: 7,
    };
    let coverage = Coverage::of(&combined);
    let quiet = Coverage::default();
    let mut current = MoEDeploymentStatus::default();
    for coverage in [Some(&coverage), None, Some(&quiet)] {
        let (own, _) = derive(&Seen::Off, coverage, None, Some(1), &current, &at(1));
        current = serde_json::from_value(serde_json::to_value(&own).unwrap()).unwrap();
        let signature = current.signature.as_ref().unwrap();
        assert_eq!(
            (signature.source.as_str(), signature.reason.as_str()),
            ("Text", "Covered")
        );
    }
}
