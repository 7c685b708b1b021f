use coterie_crds::v1alpha1::{
    Drift, DriftMode, DriftStatus,
    RunPhase::{Running, Succeeded},
    RunReason,
};

use crate::{
    drift::gate::{Gate, gate, last_refit, next_eligible},
    testing::{at, run},
};

fn drift() -> Drift {
    Drift {
        cooldown: "1m".into(),
        max_refits_per_day: 2,
        ..Drift::default()
    }
}

#[test]
fn a_cooldown_lies_between_two_refits() {
    let last = at(100);
    assert_eq!(gate(&drift(), Some(&last), &[], &at(159)), Gate::Cooldown);
    assert_eq!(gate(&drift(), Some(&last), &[], &at(160)), Gate::Open);
    assert_eq!(next_eligible(&last, &drift()), Some(at(160)));
}

#[test]
fn one_run_at_a_time_and_so_many_a_day() {
    let running = [run("r", 1, RunReason::Manual, Running)];
    assert_eq!(gate(&drift(), None, &running, &at(1000)), Gate::RunNotFinished);
    let today = [
        run("a", 100, RunReason::Drift, Succeeded),
        run("b", 200, RunReason::Drift, Succeeded),
        run("m", 300, RunReason::Manual, Succeeded),
    ];
    let last = last_refit(None, &today).unwrap();
    assert_eq!(last, at(200), "the runs tell it when the status was lost");
    assert_eq!(gate(&drift(), Some(&last), &today, &at(1000)), Gate::DailyBudget);
    assert_eq!(gate(&drift(), Some(&last), &today, &at(86_400 + 150)), Gate::Open);
}

#[test]
fn observing_starts_nothing() {
    let observe = Drift {
        mode: DriftMode::Observe,
        ..drift()
    };
    let gate = gate(&observe, None, &[], &at(1));
    assert_eq!(gate.skipped_reason().as_deref(), Some("Observe"));
    assert_eq!(Gate::Open.skipped_reason(), None);
}

#[test]
fn the_status_remembers_the_last_refit_of_a_collected_run() {
    let status = DriftStatus {
        last_refit_time: Some(at(500)),
        ..DriftStatus::default()
    };
    assert_eq!(last_refit(Some(&status), &[]), Some(at(500)));
}
