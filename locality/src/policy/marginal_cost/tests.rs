use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::property::config;

const LAYERS: usize = 3;
const EXPERTS: usize = 16;

fn geometry() -> Geometry {
    Geometry::new(LAYERS, EXPERTS, 4).unwrap()
}

fn frequencies(values: &[f32]) -> Frequencies {
    Frequencies::new(&geometry(), values).unwrap()
}

/// Frequencies that prefer one part of the experts.
fn of_domain(domain: usize, rng: &mut impl Rng) -> Frequencies {
    let values: Vec<f32> = (0..LAYERS * EXPERTS)
        .map(|cell| {
            let high = if cell % 4 == domain { 0.8 } else { 0.05 };
            high * rng.gen_range(0.8..1.2f32)
        })
        .collect();
    frequencies(&values)
}

fn choose(
    policy: &MarginalCost,
    loads: &[f32],
    frequencies: &Frequencies,
    workers: &[WorkerId],
    seed: u64,
) -> Decision {
    let candidates = Candidates {
        loads,
        frequencies: Some(frequencies),
        workers,
        ..Candidates::default()
    };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    policy.choose(&candidates, &mut rng).unwrap()
}

fn values() -> impl Strategy<Value = Vec<f32>> {
    let extreme = prop_oneof![3 => 0.0..1.0f32, 1 => Just(0.0f32), 1 => Just(1.0f32)];
    proptest::collection::vec(extreme, LAYERS * EXPERTS)
}

/// (1 - prod(1 - p)) summed, by the book.
fn distinct(requests: &[&Vec<f32>]) -> f64 {
    let used = |cell: usize| 1.0 - requests.iter().map(|p| 1.0 - f64::from(p[cell])).product::<f64>();
    (0..LAYERS * EXPERTS).map(used).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..config() })]

    #[test]
    fn a_union_forgets_what_left_to_the_last_bit(requests in proptest::collection::vec(values(), 1..12), order in any::<u64>()) {
        let policy = MarginalCost::new(&geometry());
        let all: Vec<Frequencies> = requests.iter().map(|v| frequencies(v)).collect();
        policy.started(WorkerId(0), Some(&all[0]), 0.0);
        let before = policy.summary(WorkerId(0));
        let bits = |p: &MarginalCost| format!("{:?}", p.read().exact(WorkerId(0)));
        let exactly = bits(&policy);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(order);
        let mut running: Vec<usize> = (1..all.len()).collect();
        for i in &running {
            policy.started(WorkerId(0), Some(&all[*i]), 0.0);
        }
        while !running.is_empty() {
            let left = running.swap_remove(rng.gen_range(0..running.len()));
            policy.finished(WorkerId(0), Some(&all[left]), 0.0);
        }
        prop_assert_eq!(policy.summary(WorkerId(0)), before);
        prop_assert_eq!(bits(&policy), exactly);
    }

    #[test]
    fn expected_experts_are_those_of_the_formula_and_only_rise(requests in proptest::collection::vec(values(), 2..10)) {
        let policy = MarginalCost::new(&geometry());
        let mut last = 0.0;
        let mut batch: Vec<&Vec<f32>> = Vec::new();
        for (i, request) in requests.iter().enumerate() {
            batch.push(request);
            let decision = choose(&policy, &[i as f32], &frequencies(request), &[], 1);
            let got = f64::from(decision.distinct_experts.unwrap()) * LAYERS as f64;
            prop_assert!((got - distinct(&batch)).abs() < 0.02, "{got} {}", distinct(&batch));
            prop_assert!(got >= last - 0.01);
            last = got;
            policy.started(WorkerId(0), Some(&frequencies(request)), 0.0);
        }
    }

    #[test]
    fn names_and_order_of_workers_do_not_matter(seed in any::<u64>(), turn in 1usize..5) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let policy = MarginalCost::new(&geometry());
        let mut loads = vec![0.0f32; 5];
        for _ in 0..40 {
            let worker = rng.gen_range(0..5usize);
            let request = of_domain(rng.gen_range(0..4), &mut rng);
            policy.started(WorkerId(worker as u64), Some(&request), 0.0);
            loads[worker] += 1.0;
        }
        let request = of_domain(1, &mut rng);
        let workers: Vec<WorkerId> = (0..5).map(WorkerId).collect();
        let chosen = choose(&policy, &loads, &request, &workers, 1);
        let (mut turned_workers, mut turned_loads) = (workers.clone(), loads.clone());
        turned_workers.rotate_left(turn);
        turned_loads.rotate_left(turn);
        let turned = choose(&policy, &turned_loads, &request, &turned_workers, 2);
        prop_assert_eq!(turned_workers[turned.worker], workers[chosen.worker]);
        prop_assert_eq!(turned.distinct_experts, chosen.distinct_experts);
    }

    #[test]
    fn any_load_and_step_time_is_survived(
        loads in proptest::collection::vec(prop_oneof![Just(f32::NAN), Just(f32::INFINITY), any::<f32>()], 1..6),
        seconds in prop_oneof![Just(f64::NAN), Just(f64::INFINITY), any::<f64>()],
        values in values(),
    ) {
        let policy = MarginalCost::new(&geometry());
        let request = frequencies(&values);
        policy.started(WorkerId(0), Some(&request), 0.0);
        for load in &loads {
            policy.observed(WorkerId(0), *load, seconds);
            policy.observed(WorkerId(0), 1.0, 0.01);
        }
        let decision = choose(&policy, &loads, &request, &[], 1);
        prop_assert!(decision.worker < loads.len());
        prop_assert!(decision.distinct_experts.unwrap().is_finite());
        let law = policy.law().unwrap();
        prop_assert!([law.base, law.per_expert, law.per_request].iter().all(|v| v.is_finite() && *v >= 0.0), "{law:?}");
    }
}

#[test]
fn a_request_joins_its_like_at_equal_load_and_an_idle_worker_before_that() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let policy = MarginalCost::new(&geometry());
    for worker in 0..4 {
        for _ in 0..6 {
            policy.started(WorkerId(worker), Some(&of_domain(worker as usize, &mut rng)), 0.0);
        }
    }
    for domain in 0..4 {
        let request = of_domain(domain, &mut rng);
        assert_eq!(choose(&policy, &[6.0; 4], &request, &[], 1).worker, domain);
        assert_eq!(choose(&policy, &[6.0, 6.0, 6.0, 6.0, 0.0], &request, &[], 1).worker, 4);
    }
}

#[test]
fn idle_workers_share_the_traffic_by_seed() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let policy = MarginalCost::new(&geometry());
    let request = of_domain(0, &mut rng);
    let mut hits = [0; 4];
    for seed in 0..4000 {
        hits[choose(&policy, &[0.0; 4], &request, &[], seed).worker] += 1;
    }
    assert!(hits.iter().all(|h| (850..1150).contains(h)), "{hits:?}");
}

#[test]
fn a_worker_that_left_is_forgotten_and_its_late_ends_change_nothing() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let policy = MarginalCost::new(&geometry());
    let (one, two) = (of_domain(0, &mut rng), of_domain(1, &mut rng));
    policy.started(WorkerId(0), Some(&one), 0.0);
    policy.started(WorkerId(1), Some(&two), 0.0);
    policy.workers(&[WorkerId(1)]);
    policy.finished(WorkerId(0), Some(&one), 1.0);
    assert_eq!(policy.summary(WorkerId(0)), None);
    assert_eq!(policy.summary(WorkerId(1)).unwrap().requests(), 1);
    // More ends than starts are ignored too.
    policy.finished(WorkerId(1), Some(&two), 1.0);
    policy.finished(WorkerId(1), Some(&two), 1.0);
    let summary = policy.summary(WorkerId(1)).unwrap();
    assert!(summary.requests() == 0 && summary.cells().iter().all(|c| *c == 0));
}

#[test]
fn without_frequencies_it_is_least_loaded() {
    let policy = MarginalCost::new(&geometry());
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut ask = |loads: &[f32], frequencies: Option<&Frequencies>| {
        let candidates = Candidates {
            loads,
            frequencies,
            ..Candidates::default()
        };
        policy.choose(&candidates, &mut rng)
    };
    let other = Frequencies::new(&Geometry::new(1, 2, 1).unwrap(), &[0.5, 0.5]).unwrap();
    for frequencies in [None, Some(&other)] {
        let decision = ask(&[2.0, 1.0], frequencies).unwrap();
        assert_eq!((decision.worker, decision.reason), (1, Reason::NoSignature));
        policy.started(WorkerId(1), frequencies, 0.0);
    }
    assert_eq!(policy.summary(WorkerId(1)), None);
    assert!(ask(&[], None).is_none());
}

#[test]
fn a_summary_lets_one_router_see_the_batch_of_another() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let (own, peer, third) = (
        MarginalCost::new(&geometry()),
        MarginalCost::new(&geometry()),
        MarginalCost::new(&geometry()),
    );
    for _ in 0..4 {
        for worker in 0..2 {
            peer.started(WorkerId(worker), Some(&of_domain(worker as usize, &mut rng)), 0.0);
            third.started(WorkerId(worker), Some(&of_domain(worker as usize, &mut rng)), 0.0);
        }
    }
    for worker in [WorkerId(0), WorkerId(1)] {
        let mut all = peer.summary(worker).unwrap();
        all.merge(&third.summary(worker).unwrap()).unwrap();
        assert_eq!(all.requests(), 8);
        own.set_others(worker, &all);
    }
    for domain in 0..2 {
        let request = of_domain(domain, &mut rng);
        assert_eq!(choose(&own, &[8.0; 2], &request, &[], 1).worker, domain);
    }
    let mut wrong = UnionSummary::new(1, vec![0; 2]);
    assert!(wrong.merge(&peer.summary(WorkerId(0)).unwrap()).is_err());
    own.set_others(WorkerId(0), &wrong);
    assert_eq!(choose(&own, &[8.0; 2], &of_domain(0, &mut rng), &[], 1).worker, 0);
}

#[test]
fn similarity_sharpens_the_choice_where_workers_are_busy() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let policy = MarginalCost::new(&geometry());
    for _ in 0..10 {
        let request = of_domain(0, &mut rng);
        policy.started(WorkerId(0), Some(&request), 0.0);
        policy.started(WorkerId(1), Some(&request), 0.0);
    }
    let request = of_domain(0, &mut rng);
    let mut choose = |similarity: &[f32]| {
        let candidates = Candidates {
            loads: &[10.0, 10.0],
            similarity: Some(similarity),
            frequencies: Some(&request),
            ..Candidates::default()
        };
        policy.choose(&candidates, &mut rng).unwrap()
    };
    assert_eq!(choose(&[0.2, 0.9]).worker, 1);
    let decision = choose(&[0.9, 0.2]);
    assert_eq!((decision.worker, decision.chosen_similarity), (0, Some(0.9)));
    assert_eq!(choose(&[f32::NAN, 0.2]).best_similarity, None);
}
