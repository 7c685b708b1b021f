use half::f16;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::transform::normalise;

/// Unit vectors with non-negative cells, as signatures and their means are; `power` makes few cells hold most of the weight.
fn units(n: usize, dim: usize, power: i32, rng: &mut Xoshiro256PlusPlus) -> Vec<f32> {
    let mut rows: Vec<f32> = (0..n * dim).map(|_| rng.gen_range(0.0f32..1.0).powi(power)).collect();
    rows.chunks_exact_mut(dim).for_each(|row| {
        normalise(row);
    });
    rows
}

proptest! {
    #![proptest_config(crate::property::config())]

    /// A table stored as f16 moves a similarity by at most 2^-11, so a worker changes sides of the band's edge only within 1e-3 of it.
    #[test]
    fn f16_centroids_change_the_band_only_at_its_edge(seed in any::<u64>(), dim in 1usize..700, power in 1i32..9, tau in 0.0f32..0.2) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (centroids, signature) = (units(8, dim, power, &mut rng), units(1, dim, power, &mut rng));
        let rounded: Vec<f32> = centroids.iter().map(|c| f16::from_f32(*c).to_f32()).collect();
        let (mut exact, mut half) = ([0.0; 8], [0.0; 8]);
        vectors::similarities_of_one(&signature, &centroids, &mut exact);
        vectors::similarities_of_one(&signature, &rounded, &mut half);
        for (e, h) in exact.iter().zip(&half) {
            prop_assert!((e - h).abs() < 5e-4, "{} and {}", e, h);
        }
        let edge = |scores: &[f32]| scores.iter().copied().fold(f32::MIN, f32::max) - tau;
        for (e, h) in exact.iter().zip(&half) {
            let same = (*e >= edge(&exact)) == (*h >= edge(&half));
            prop_assert!(same || (e - edge(&exact)).abs() < 1e-3);
        }
    }
}
