use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::policy::{Candidates, EldrOnline, LocalityBand, Policy, Ties};
use crate::transform::normalise;

const ROUTER: RefitOptions = RefitOptions {
    window: 2.0,
    interval: 1.0,
};

fn unit(x: f32, y: f32) -> [f32; 2] {
    let mut v = [x, y];
    normalise(&mut v);
    v
}

fn eye() -> Refit {
    Refit::new(vec![1.0, 0.0, 0.0, 1.0], 2, ROUTER).unwrap()
}

fn rng() -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(1)
}

/// The timelines of the ELDR artifact: window 2 s, re-fit every 1 s.
#[test]
fn drift_moves_centroids_and_keeps_their_numbers() {
    let mut refit = eye();
    let events = [
        (0.0, (1.0, 1.0)),
        (0.6667, (-1.0, 1.0)),
        (1.3333, (1.0, 1.0)),
        (2.0, (-1.0, 1.0)),
    ];
    let mut job = None;
    for (at, (x, y)) in events {
        assert!(job.is_none(), "before {at}");
        job = refit.offer(&unit(x, y), at).unwrap();
    }
    refit.finish(job.unwrap().run());
    assert_eq!(refit.fits(), (1, 1));
    let c = refit.centroids();
    assert!(c[1] > 0.6 && c[2] < -0.6, "{c:?}");
    assert!(c.chunks_exact(2).all(|r| (r[0].hypot(r[1]) - 1.0).abs() < 1e-5));
}

#[test]
fn fits_start_after_a_window_and_then_at_most_every_interval() {
    let mut refit = eye();
    let starts = |refit: &mut Refit, routes: usize, at: f64| {
        let jobs: Vec<_> = (0..routes)
            .filter_map(|_| refit.offer(&[1.0, 0.0], at).unwrap())
            .collect();
        jobs.into_iter().next()
    };
    assert!(starts(&mut refit, 20, 0.0).is_none());
    assert!(starts(&mut refit, 20, 1.99).is_none());
    assert_eq!(refit.fits().0, 0);
    let job = starts(&mut refit, 1, 2.0).unwrap();
    refit.finish(job.run());
    assert!(starts(&mut refit, 20, 2.0).is_none());
    assert_eq!(refit.fits(), (1, 1));
    assert!(starts(&mut refit, 1, 3.0).is_some());
    assert_eq!(refit.fits().0, 2);
}

#[test]
fn signatures_expire() {
    let mut refit = Refit::new(vec![1.0, 0.0], 2, ROUTER).unwrap();
    assert!(refit.offer(&[1.0, 0.0], 0.0).unwrap().is_none());
    let job = refit.offer(&[0.0, 1.0], 2.01).unwrap().unwrap();
    refit.finish(job.run());
    assert_eq!(refit.centroids(), [0.0, 1.0]);
}

#[test]
fn a_failed_fit_changes_nothing_and_the_next_good_one_clears_it() {
    let mut refit = eye();
    refit.offer(&[1.0, 0.0], 0.0).unwrap();
    refit.offer(&[0.0, 1.0], 2.0).unwrap().unwrap();
    let before = refit.centroids().to_vec();
    for bad in [vec![f32::NAN; 4], vec![1.0, 0.0], vec![3.0, 0.0, 0.0, 1.0]] {
        refit.running_again();
        refit.finish(Ok(bad));
        assert_eq!(refit.centroids(), before);
        assert_eq!(refit.fits().1, 0);
        assert!(refit.last_error().unwrap().contains("invalid centroid"));
    }
    let job = refit.offer(&[0.0, 1.0], 3.0).unwrap().unwrap();
    refit.finish(job.run());
    assert_eq!((refit.fits().1, refit.last_error()), (1, None));
}

#[test]
fn a_fit_that_never_ends_blocks_nothing_and_no_other_starts() {
    let mut refit = eye();
    refit.running_again();
    for at in 0..8 {
        assert!(refit.offer(&[1.0, 0.0], f64::from(at)).unwrap().is_none());
    }
    assert_eq!(refit.fits().0, 0);
    let policy = EldrOnline::new(eye(), 2, 0.1, 1)
        .unwrap()
        .with_fit_seconds(f64::INFINITY);
    for at in 0..8 {
        let chosen = policy
            .route(&[0.0, 1.0], &[0.0, 0.0], f64::from(at), &mut rng())
            .unwrap();
        assert_eq!(chosen.unwrap().worker, 1);
    }
    assert_eq!(policy.refit().fits(), (1, 0));
}

#[test]
fn zeros_are_routed_by_load_and_not_kept_and_others_are_normalised() {
    let policy = EldrOnline::new(eye(), 2, 0.1, 1).unwrap();
    let decision = policy
        .route(&[0.0, 0.0], &[1.0, 0.0], 0.0, &mut rng())
        .unwrap()
        .unwrap();
    assert_eq!((decision.worker, policy.refit().window().len()), (1, 0));
    policy.route(&[3.0, 4.0], &[0.0, 0.0], 0.0, &mut rng()).unwrap();
    let kept: Vec<f32> = policy.refit().window().next().unwrap().to_vec();
    assert!((kept[0] - 0.6).abs() < 1e-6 && (kept[1] - 0.8).abs() < 1e-6);
}

#[test]
fn a_result_is_used_when_its_time_has_come() {
    let policy = EldrOnline::new(eye(), 2, 0.1, 1).unwrap().with_fit_seconds(0.5);
    for (at, completed) in [
        (0.0, 0),
        (1.0, 0),
        (2.0, 0),
        (2.4, 0),
        (2.5, 1),
        (2.9, 1),
        (3.0, 1),
        (3.5, 2),
    ] {
        policy.route(&unit(1.0, 1.0), &[0.0, 0.0], at, &mut rng()).unwrap();
        assert_eq!(policy.refit().fits().1, completed, "at {at}");
    }
}

#[test]
fn refuses_what_the_artifact_refuses() {
    for (window, interval) in [(0.0, 1.0), (2.0, 0.0), (f64::NAN, 1.0), (2.0, f64::INFINITY)] {
        assert!(Refit::new(vec![1.0, 0.0], 2, RefitOptions { window, interval }).is_err());
    }
    for tau in [f32::NAN, f32::INFINITY, -1.0] {
        assert!(EldrOnline::new(eye(), 2, tau, 1).is_err());
    }
    assert!(EldrOnline::new(eye(), 3, 0.1, 1).is_err(), "3 workers with 2 seeds");
    let policy = EldrOnline::new(eye(), 2, 0.1, 1).unwrap();
    for bad in [&[f32::NAN, 0.0][..], &[f32::INFINITY, 0.0], &[1.0], &[1.0, 0.0, 0.0]] {
        assert!(policy.route(bad, &[0.0, 0.0], 0.0, &mut rng()).is_err());
        let candidates = Candidates {
            loads: &[1.0, 0.0],
            signature: Some(bad),
            ..Candidates::default()
        };
        assert_eq!(
            policy.choose(&candidates, &mut rng()).unwrap().worker,
            1,
            "least-loaded instead"
        );
    }
    assert!(policy.route(&[1.0, 0.0], &[0.0], 0.0, &mut rng()).is_err());
    assert!(Refit::new(vec![2.0, 0.0], 2, ROUTER).is_err());
    assert!(Refit::new(Vec::new(), 2, ROUTER).is_err());
}

#[test]
fn before_any_fit_it_is_the_static_rule() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut centroids = Vec::new();
    for _ in 0..16 {
        let mut row: Vec<f32> = (0..12).map(|_| rng.gen_range(-1.0..1.0)).collect();
        normalise(&mut row);
        centroids.extend(row);
    }
    let online = EldrOnline::new(Refit::new(centroids.clone(), 12, ROUTER).unwrap(), 16, 0.1, 1).unwrap();
    let mut fixed = LocalityBand::new(0.1, 1, None).unwrap();
    fixed.ties = Ties::LowestIndex;
    for _ in 0..1000 {
        let mut x: Vec<f32> = (0..12).map(|_| rng.gen_range(-1.0..1.0)).collect();
        normalise(&mut x);
        let loads: Vec<f32> = (0..16).map(|_| rng.gen_range(0..6) as f32).collect();
        let similarity: Vec<f32> = centroids.chunks_exact(12).map(|c| crate::score::dot(&x, c)).collect();
        let candidates = Candidates {
            loads: &loads,
            similarity: Some(&similarity),
            ..Candidates::default()
        };
        let expected = fixed.choose(&candidates, &mut rng).unwrap().worker;
        assert_eq!(
            online.route(&x, &loads, 0.0, &mut rng).unwrap().unwrap().worker,
            expected
        );
    }
}
