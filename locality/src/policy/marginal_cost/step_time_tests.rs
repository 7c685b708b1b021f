use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::step_time::{StepLaw, StepTime};

const LAW: StepLaw = StepLaw {
    base: 4.0e-3,
    per_expert: 8.0e-5,
    per_request: 5.0e-5,
};

fn time(law: &StepLaw, distinct: f64, load: f64) -> f64 {
    law.base + law.per_expert * distinct + law.per_request * load
}

fn watch(law: &StepLaw, loads: std::ops::Range<f64>, noise: f64, stalls: bool) -> StepTime {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut learned = StepTime::default();
    for i in 0..20_000 {
        let load = rng.gen_range(loads.clone()).floor();
        let distinct = 380.0 * (1.0 - (-load / 28.0f64).exp()) * rng.gen_range(0.85..1.15);
        let mut seconds = time(law, distinct, load) * (1.0 + noise * rng.gen_range(-1.0..1.0));
        if stalls && i % 40 == 0 {
            seconds *= 30.0;
        }
        learned.observe(distinct, load, seconds);
    }
    learned
}

#[test]
fn the_law_is_found_from_noisy_steps_with_stalls() {
    let found = watch(&LAW, 1.0..90.0, 0.05, true).learned().unwrap();
    for load in [1.0, 10.0, 30.0, 80.0] {
        let distinct = 380.0 * (1.0 - (-load / 28.0f64).exp());
        let (expected, got) = (time(&LAW, distinct, load), time(&found, distinct, load));
        assert!(
            (got / expected - 1.0).abs() < 0.08,
            "load {load}: {got} instead of {expected}"
        );
    }
    assert!((found.per_expert / LAW.per_expert - 1.0).abs() < 0.15, "{found:?}");
}

#[test]
fn units_do_not_matter() {
    let scaled = |factor: f64| StepLaw {
        base: LAW.base * factor,
        per_expert: LAW.per_expert * factor,
        per_request: LAW.per_request * factor,
    };
    let small = watch(&scaled(1e-3), 1.0..90.0, 0.05, false).learned().unwrap();
    let large = watch(&scaled(1e3), 1.0..90.0, 0.05, false).learned().unwrap();
    assert!((large.per_expert / small.per_expert / 1e6 - 1.0).abs() < 1e-3);
    assert!((large.per_request / small.per_request / 1e6 - 1.0).abs() < 1e-3);
}

#[test]
fn one_load_only_leaves_a_sane_split_that_explains_the_step() {
    let mut learned = StepTime::default();
    for _ in 0..5_000 {
        learned.observe(240.0, 27.0, 0.025);
    }
    let law = learned.learned().unwrap();
    assert!((time(&law, 240.0, 27.0) / 0.025 - 1.0).abs() < 0.01);
    assert!(
        law.base > 0.0 && law.per_expert > 0.0 && law.per_request > 0.0,
        "{law:?}"
    );
}

#[test]
fn parts_never_turn_negative() {
    // Steps that get quicker with load, as no engine's do.
    let mut learned = StepTime::default();
    for i in 0..5_000 {
        let load = f64::from(1 + i % 50);
        learned.observe(load * 5.0, load, 0.05 - load * 5e-4);
        let law = learned.learned().unwrap();
        assert!(
            law.base >= 0.0 && law.per_expert >= 0.0 && law.per_request >= 0.0,
            "{law:?}"
        );
    }
}

#[test]
fn what_is_no_step_is_ignored() {
    let mut learned = StepTime::default();
    for (distinct, load, seconds) in [
        (0.0, 1.0, 0.01),
        (f64::NAN, 1.0, 0.01),
        (9.0, 0.0, 0.01),
        (9.0, f64::INFINITY, 0.01),
        (9.0, 1.0, 0.0),
        (9.0, 1.0, -1.0),
        (9.0, 1.0, f64::NAN),
    ] {
        learned.observe(distinct, load, seconds);
    }
    assert_eq!(learned.learned(), None);
    assert!(learned.law(9.0, 1.0).per_expert > 0.0);
}
