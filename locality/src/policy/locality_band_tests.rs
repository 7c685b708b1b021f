use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

fn eldr(tau: f32, min_candidates: usize) -> LocalityBand {
    LocalityBand {
        ties: Ties::LowestIndex,
        ..LocalityBand::new(tau, min_candidates, None).unwrap()
    }
}

fn choose(policy: &LocalityBand, similarity: &[f32], loads: &[f32]) -> Decision {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    policy
        .choose(
            &Candidates {
                loads,
                similarity: Some(similarity),
                ..Candidates::default()
            },
            &mut rng,
        )
        .unwrap()
}

/// Band vectors of the ELDR artifact: (similarities, tau, band of v1, band of min2).
#[test]
fn bands_match_eldr() {
    type Case = (&'static [f32], f32, &'static [usize], &'static [usize]);
    let cases: &[Case] = &[
        (&[0.9, 0.7, 0.2], 0.0, &[0], &[0]),
        (&[0.9, 0.7, 0.2], 0.1, &[0], &[0, 1]),
        (&[0.7, 0.9, 0.2], 0.1, &[1], &[0, 1]),
        (&[0.9, 0.85, 0.83, 0.2], 0.1, &[0, 1, 2], &[0, 1, 2]),
        (&[0.9, 0.7, 0.7], 0.1, &[0], &[0, 1]),
        (&[0.9, 0.9, 0.7], 0.0, &[0, 1], &[0, 1]),
        (&[0.0, 0.0, 0.0], 0.1, &[0, 1, 2], &[0, 1, 2]),
        (&[0.9], 0.1, &[0], &[0]),
        // The threshold is computed in f32, like NumPy 2 does.
        (&[0.9, 0.8, 0.7], 0.1, &[0, 1], &[0, 1]),
        (&[1.0, 0.9], 0.1, &[0, 1], &[0, 1]),
        (&[0.5, 0.4], 0.1, &[0, 1], &[0, 1]),
    ];
    for (similarity, tau, v1, min2) in cases {
        assert_eq!(eldr(*tau, 1).band(similarity), *v1, "v1 {similarity:?} tau {tau}");
        assert_eq!(eldr(*tau, 2).band(similarity), *min2, "min2 {similarity:?} tau {tau}");
    }
}

/// Routing vectors of the ELDR artifact.
#[test]
fn routes_match_eldr() {
    assert_eq!(choose(&eldr(0.1, 1), &[1.0, 0.995, 0.0], &[3.0, 0.0, 0.0]).worker, 1);
    for _ in 0..20 {
        assert_eq!(choose(&eldr(0.1, 1), &[1.0, 0.0], &[0.0, 0.0]).worker, 0);
    }
    let half = std::f32::consts::FRAC_1_SQRT_2;
    assert_eq!(choose(&eldr(0.1, 1), &[half, half], &[2.0, 1.0]).worker, 1);
    assert_eq!(choose(&eldr(0.1, 1), &[half, half], &[1.0, 1.0]).worker, 0);
    assert_eq!(choose(&eldr(0.1, 1), &[0.0, 0.0], &[3.0, 1.0]).worker, 1);
    assert_eq!(choose(&eldr(0.1, 1), &[1.0, 0.0], &[3.0, 0.0]).worker, 0);
    assert_eq!(choose(&eldr(0.1, 2), &[1.0, 0.0], &[3.0, 0.0]).worker, 1);
}

#[test]
fn guard_empties_a_hot_band_and_widens_by_similarity() {
    let policy = LocalityBand::new(0.05, 1, Some(1.5)).unwrap();
    // Mean 10: ceil(41 / 4) - 1 + floor(0.5 x 9) = 14.
    let similarity = [0.9, 0.6, 0.58, 0.1];
    let inside = choose(&policy, &similarity, &[14.0, 8.0, 8.0, 10.0]);
    assert_eq!(
        (inside.worker, inside.spilled, inside.reason, inside.band),
        (0, false, Reason::Band, 1)
    );
    let outside = choose(&policy, &similarity, &[28.0, 8.0, 4.0, 0.0]);
    assert_eq!(
        (outside.worker, outside.spilled, outside.reason),
        (2, true, Reason::BandWidened)
    );
    assert_eq!(
        (outside.best_similarity, outside.chosen_similarity, outside.band),
        (Some(0.9), Some(0.58), 2)
    );
}

#[test]
fn at_low_load_an_idle_worker_beats_a_similar_one() {
    let policy = LocalityBand::new(0.0, 1, Some(1.5)).unwrap();
    let decision = choose(&policy, &[0.9, 0.2, 0.3], &[1.0, 0.0, 0.0]);
    assert_eq!((decision.worker, decision.spilled), (2, true));
    // With everyone busy alike, similarity decides again.
    assert_eq!(choose(&policy, &[0.9, 0.2, 0.3], &[1.0, 1.0, 1.0]).worker, 0);
}

#[test]
fn the_band_widens_with_load() {
    let policy = LocalityBand::new(0.0, 1, Some(1.5)).unwrap();
    // How far ahead of the others a worker may be and still take the request that it suits best.
    let ahead = |others: f32| {
        let takes = |lead: &i32| {
            choose(
                &policy,
                &[0.9, 0.2, 0.3, 0.2],
                &[others + *lead as f32, others, others, others],
            )
            .worker
                == 0
        };
        (0..40).take_while(takes).last().unwrap()
    };
    assert_eq!([1.0, 2.0, 3.0].map(ahead), [0, 0, 0], "as LeastLoaded, but for ties");
    let widths = [4.0, 6.0, 10.0, 20.0, 40.0].map(ahead);
    assert!(widths[0] >= 1 && widths.is_sorted(), "{widths:?}");
}

#[test]
fn equal_loads_never_exclude_everyone() {
    for ratio in [1.0, 1.1, 3.0] {
        let policy = LocalityBand::new(0.0, 1, Some(ratio)).unwrap();
        for load in [0.0, 0.1, 1.0, 7.3, 1e6] {
            let decision = choose(&policy, &[0.2, 0.9, 0.3], &[load; 3]);
            assert_eq!(
                (decision.worker, decision.spilled),
                (1, false),
                "ratio {ratio} load {load}"
            );
        }
    }
}

#[test]
fn ties_in_the_band_are_spread_by_seed() {
    let policy = LocalityBand::new(0.1, 1, Some(1.5)).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let candidates = Candidates {
        loads: &[0.0; 4],
        similarity: Some(&[0.9, 0.85, 0.3, 0.88]),
        ..Candidates::default()
    };
    let mut hits = [0u32; 4];
    for _ in 0..3000 {
        hits[policy.choose(&candidates, &mut rng).unwrap().worker] += 1;
    }
    assert_eq!(hits[2], 0);
    assert!([0, 1, 3].iter().all(|w| (850..1150).contains(&hits[*w])), "{hits:?}");
}

#[test]
fn without_usable_similarity_it_is_least_loaded() {
    let policy = LocalityBand::new(0.1, 1, Some(1.5)).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for similarity in [None, Some(&[0.5f32][..]), Some(&[f32::NAN, 0.5][..])] {
        let decision = policy
            .choose(
                &Candidates {
                    loads: &[2.0, 1.0],
                    similarity,
                    ..Candidates::default()
                },
                &mut rng,
            )
            .unwrap();
        assert_eq!(
            (decision.worker, decision.reason, decision.best_similarity),
            (1, Reason::NoSignature, None)
        );
    }
    assert!(
        policy
            .choose(
                &Candidates {
                    loads: &[],
                    similarity: Some(&[]),
                    ..Candidates::default()
                },
                &mut rng
            )
            .is_none()
    );
}

#[test]
fn refuses_bad_parameters() {
    for (tau, minimum, ratio) in [
        (f32::NAN, 1, None),
        (f32::INFINITY, 1, None),
        (-1.0, 1, None),
        (0.1, 0, None),
        (0.1, 1, Some(0.9)),
        (0.1, 1, Some(f32::NAN)),
    ] {
        assert!(LocalityBand::new(tau, minimum, ratio).is_err());
    }
}

#[test]
fn other_baselines_keep_their_word() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let candidates = Candidates {
        loads: &[5.0, 0.0, 9.0],
        similarity: None,
        ..Candidates::default()
    };
    let mut seen = [false; 3];
    for _ in 0..100 {
        seen[Random.choose(&candidates, &mut rng).unwrap().worker] = true;
        // Whoever is drawn, the busiest of three never wins against either other.
        assert_ne!(PowerOfTwoChoices.choose(&candidates, &mut rng).unwrap().worker, 2);
    }
    assert_eq!(seen, [true; 3]);
}
