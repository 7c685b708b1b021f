use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::spearman::*;

#[test]
fn ties_share_their_average_rank() {
    assert_eq!(average_ranks(&[0.3, 0.1, 0.3, 0.2]), [3.5, 1.0, 3.5, 2.0]);
    assert_eq!(average_ranks(&[-0.0, 0.0, -1.0]), [2.5, 2.5, 1.0]);
    assert_eq!(average_ranks(&[]), [0.0; 0]);
}

#[test]
fn known_correlations() {
    let near = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() < 1e-6;
    assert!(near(spearman(&[1.0, 2.0, 3.0, 4.0], &[10.0, 20.0, 30.0, 40.0]), 1.0));
    assert!(near(spearman(&[1.0, 2.0, 3.0, 4.0], &[4.0, 3.0, 2.0, 1.0]), -1.0));
    // Ranks 1 2 3 4 5 against 1 3 2 5 4: squared differences add up to 4, and 1 - 6 x 4 / (5 x 24) = 0.8.
    assert!(near(
        spearman(&[1.0, 2.0, 3.0, 4.0, 5.0], &[1.0, 3.0, 2.0, 5.0, 4.0]),
        0.8
    ));
    assert!(spearman(&[1.0, 1.0], &[1.0, 2.0]).is_none());
    assert!(spearman(&[1.0], &[1.0]).is_none());
    assert!(spearman(&[1.0, 2.0], &[1.0]).is_none());
}

#[test]
fn pairs_are_seeded_and_never_of_one_request() {
    assert_eq!(all_pairs(3), [(0, 1), (0, 2), (1, 2)]);
    assert_eq!(sample_pairs(3, 100, 1), all_pairs(3));
    let pairs = sample_pairs(500, 1000, 1);
    assert_eq!(pairs, sample_pairs(500, 1000, 1));
    assert!(pairs.len() > 980 && pairs.iter().all(|(i, j)| i != j && *i < 500 && *j < 500));
    assert!(sample_pairs(1, 10, 1).is_empty());
}

/// Requests are points on a line with noise; pairs share them, so the interval over requests must be wider than one over pairs.
#[test]
fn interval_covers_the_value_and_is_wider_than_over_pairs() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let at: Vec<f32> = (0..60).map(|_| rng.gen_range(0.0..1.0)).collect();
    let noisy: Vec<f32> = at.iter().map(|x| x + rng.gen_range(-0.3..0.3)).collect();
    let pairs = all_pairs(60);
    let gap = |v: &[f32]| {
        pairs
            .iter()
            .map(|(i, j)| (v[*i as usize] - v[*j as usize]).abs())
            .collect::<Vec<_>>()
    };
    let (x, y) = (gap(&at), gap(&noisy));
    let rho = rho_with_interval(&pairs, &x, &y, 60, 300, 1).unwrap();
    assert!((rho.value - spearman(&x, &y).unwrap()).abs() < 1e-12);
    assert!(rho.interval[0] < rho.value && rho.value < rho.interval[1]);
    let over_pairs = (1.0 - rho.value * rho.value) / (pairs.len() as f64).sqrt();
    assert!(
        rho.standard_error > 2.0 * over_pairs,
        "{} against {over_pairs}",
        rho.standard_error
    );
    assert_eq!(rho_with_interval(&pairs, &x, &y, 60, 300, 1), Some(rho));
    assert!(rho_with_interval(&pairs, &x, &y, 59, 300, 1).is_none());
}

/// Pearson correlation of average ranks, by the book.
fn by_the_book(x: &[f32], y: &[f32]) -> f64 {
    let (x, y) = (average_ranks(x), average_ranks(y));
    let mean = |v: &[f32]| v.iter().map(|r| f64::from(*r)).sum::<f64>() / v.len() as f64;
    let (mx, my) = (mean(&x), mean(&y));
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (a, b) in x.iter().zip(&y) {
        let (a, b) = (f64::from(*a) - mx, f64::from(*b) - my);
        xy += a * b;
        xx += a * a;
        yy += b * b;
    }
    xy / (xx * yy + 1e-9).sqrt()
}

#[test]
fn crowded_and_odd_values_are_ranked_exactly() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
    let y: Vec<f32> = (0..5000).map(|_| rng.gen_range(0.0..1.0)).collect();
    // Nearly all in one bucket, beside one far away; few distinct values; all alike but one; infinities and NaN.
    let crowded: Vec<f32> = y.iter().map(|v| v * 1e-4).chain([9.0]).take(5000).collect();
    let coarse: Vec<f32> = y.iter().map(|v| (v * 4.0).round()).collect();
    let mut lone = vec![1.0; 5000];
    lone[77] = -3.0;
    let mut odd = y.clone();
    (odd[3], odd[4], odd[5], odd[6]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0);
    let mut far = crowded.clone();
    far[0] = 1e30;
    for x in [crowded, coarse, lone, odd, far] {
        let found = spearman(&x, &y).unwrap();
        assert!((found - by_the_book(&x, &y)).abs() < 1e-9, "{found}");
        assert!((found - spearman(&y, &x).unwrap()).abs() < 1e-12);
    }
}

proptest! {
    #![proptest_config(crate::property::config())]

    #[test]
    fn order_preserving_maps_change_nothing(values in proptest::collection::vec(-100i32..100, 2..50), seed in any::<u64>()) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let x: Vec<f32> = values.iter().map(|v| *v as f32).collect();
        let y: Vec<f32> = x.iter().map(|v| v + rng.gen_range(-50.0..50.0)).collect();
        let cubed: Vec<f32> = x.iter().map(|v| v * v * v).collect();
        let (a, b) = (spearman(&x, &y), spearman(&cubed, &y));
        prop_assert_eq!(a.is_some(), b.is_some());
        if let (Some(a), Some(b)) = (a, b) {
            prop_assert!((a - b).abs() < 1e-9 && (-1.0..=1.0).contains(&a));
            prop_assert!((a - by_the_book(&x, &y)).abs() < 1e-9);
        }
        let ranks: f32 = average_ranks(&x).iter().sum();
        prop_assert_eq!(ranks, (x.len() * (x.len() + 1)) as f32 / 2.0);
    }
}
