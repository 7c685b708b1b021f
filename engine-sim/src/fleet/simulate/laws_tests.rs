//! The simulator against closed forms of queueing theory, and against itself.

use coterie_locality::policy::{LeastLoaded, RoundRobin};

use super::testing::recording;
use super::*;
use crate::fleet::compare::laps;
use crate::fleet::law::{DecodeLaw, PrefillLaw};
use crate::fleet::outcome::{check, summarise};
use crate::fleet::workload::Arrival;

fn blind() -> Steering {
    Steering {
        policy: Box::new(LeastLoaded),
        knowledge: std::sync::Arc::default(),
        table: None,
        refit: None,
        marginal: None,
    }
}

fn fixed(seconds: f64) -> PrefillLaw {
    PrefillLaw {
        fixed: seconds,
        per_token: 0.0,
        per_token_squared: 0.0,
        weights: 0.0,
    }
}

fn run(options: &FleetOptions, law: &DecodeLaw, arrivals: &[Arrival], routers: Vec<Steering>) -> Outcome {
    let activity = Activity::new(&recording((1, 4, 1), &[&[0, 1], &[1, 2], &[2, 3]]));
    let setup = Setup {
        options,
        activity: &activity,
        law,
        ranks: None,
        seed: 7,
    };
    let outcome = simulate(&setup, routers, arrivals);
    check(&outcome, arrivals.len(), options.first_token == FirstToken::Prefill).unwrap();
    outcome
}

fn arrivals(rate: f64, count: usize, output: u32) -> Vec<Arrival> {
    laps(
        &recording((1, 4, 1), &[&[0, 1], &[1, 2], &[2, 3]]),
        rate,
        count,
        output,
        3,
    )
}

#[test]
fn prefill_queue_is_an_m_d_1_queue() {
    let mut options = FleetOptions::plain(1);
    options.prefill = Some(PrefillOptions {
        workers: 1,
        law: fixed(0.01),
        max_batch_tokens: 0,
    });
    options.first_token = FirstToken::Prefill;
    for utilisation in [0.3, 0.7] {
        let arrivals = arrivals(utilisation / 0.01, 40_000, 1);
        let outcome = run(&options, &DecodeLaw::linear(1e-6, 0.0, 0.0), &arrivals, vec![blind()]);
        let summary = summarise(&outcome, &|_| false);
        let wait_ms = summary.ttft_ms.mean - 10.0;
        let expected_ms = utilisation * 10.0 / (2.0 * (1.0 - utilisation));
        assert!(
            (wait_ms / expected_ms - 1.0).abs() < 0.05,
            "{wait_ms} ms waited, {expected_ms} ms expected"
        );
    }
}

#[test]
fn a_batch_whose_steps_cost_by_the_request_is_processor_sharing() {
    // Steps of 50 us per request, 200 tokens: a request alone takes 10 ms.
    let options = FleetOptions::plain(1);
    for utilisation in [0.3, 0.7] {
        let arrivals = arrivals(utilisation / 0.01, 10_000, 200);
        let outcome = run(&options, &DecodeLaw::linear(0.0, 0.0, 50e-6), &arrivals, vec![blind()]);
        let sum: f64 = outcome.journeys.iter().map(|j| seconds(j.ended - j.at)).sum();
        let (mean, expected) = (sum / 10_000.0, 0.01 / (1.0 - utilisation));
        assert!(
            (mean / expected - 1.0).abs() < 0.05,
            "{mean} s in the system, {expected} s expected"
        );
    }
}

#[test]
fn littles_law_holds() {
    let options = FleetOptions::plain(3);
    let arrivals = arrivals(50.0, 3000, 40);
    let law = DecodeLaw::linear(4e-3, 1e-3, 1e-4);
    let outcome = run(&options, &law, &arrivals, vec![blind()]);
    let time: f64 = outcome.journeys.iter().map(|j| seconds(j.ended - j.at)).sum();
    assert!(
        (outcome.tally.in_decode_s / time - 1.0).abs() < 1e-9,
        "every request-second is counted once"
    );
}

#[test]
fn same_seed_same_run_and_other_seeds_another() {
    let mut options = FleetOptions::plain(4);
    options.visibility = Visibility::Reports {
        interval_s: 0.2,
        delay_s: 0.05,
        max_age_s: 5.0,
    };
    let arrivals = arrivals(80.0, 800, 30);
    let law = DecodeLaw::linear(4e-3, 1e-3, 0.0);
    let once = run(&options, &law, &arrivals, vec![blind(), blind(), blind()]);
    let again = run(&options, &law, &arrivals, vec![blind(), blind(), blind()]);
    let json = |o: &Outcome| serde_json::to_string(&summarise(o, &|_| false)).unwrap();
    assert_eq!(json(&once), json(&again));
    let turns = || Steering {
        policy: Box::new(RoundRobin::default()),
        ..blind()
    };
    assert_ne!(json(&once), json(&run(&options, &law, &arrivals, vec![turns()])));
}

#[test]
fn several_routers_that_exchange_balance_better_than_alone() {
    let arrivals = arrivals(300.0, 4000, 30);
    let law = DecodeLaw::linear(1e-3, 0.0, 1e-3);
    let mut p99 = Vec::new();
    for visibility in [
        Visibility::OwnOnly,
        Visibility::Exchange {
            interval_s: 0.002,
            delay_s: 0.0005,
        },
    ] {
        let options = FleetOptions {
            visibility,
            ..FleetOptions::plain(12)
        };
        let outcome = run(&options, &law, &arrivals, (0..6).map(|_| blind()).collect());
        p99.push(summarise(&outcome, &|_| false).tpot_ms.p99);
    }
    assert!(p99[1] < p99[0], "{p99:?}");
}

#[test]
fn a_lost_worker_fails_streams_and_restarts_what_had_not_answered() {
    let mut options = FleetOptions::plain(2);
    options.prefill = Some(PrefillOptions {
        workers: 1,
        law: fixed(1e-3),
        max_batch_tokens: 0,
    });
    options.transfer.latency = 0.05;
    options.load_s = 1.0;
    let at = |at_s, change| ScriptLine { at_s, change };
    options.script = vec![
        at(2.0, Change::Lose(0)),
        at(2.0, Change::Start(1)),
        at(5.0, Change::Scale(4)),
        at(8.0, Change::Scale(1)),
    ];
    let arrivals = arrivals(60.0, 900, 50);
    let outcome = run(&options, &DecodeLaw::linear(4e-3, 0.0, 1e-3), &arrivals, vec![blind()]);
    let summary = summarise(&outcome, &|_| false);
    assert!(summary.failed > 0 && summary.restarted > 0, "{summary:?}");
    assert_eq!(summary.finished + summary.failed + summary.refused, 900);
    assert_eq!(summary.refused, 0);
    let late = outcome.journeys.iter().filter(|j| seconds(j.placed) > 8.0);
    let mut used: Vec<u32> = late.filter_map(|j| j.worker).collect();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used, [1], "newest workers drain first");
}

#[test]
fn without_live_workers_requests_are_refused() {
    let outcome = run(
        &FleetOptions::plain(0),
        &DecodeLaw::linear(1e-3, 0.0, 0.0),
        &arrivals(10.0, 5, 2),
        vec![blind()],
    );
    assert!(outcome.journeys.iter().all(|j| j.end == End::Refused));
}
