use super::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The definition, one number after the other.
fn plain(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let whole = a.len() / LANES * LANES;
    for (i, (x, y)) in a.iter().zip(b).enumerate().take(whole) {
        lanes[i % LANES] += x * y;
    }
    for width in [16, 8, 4, 2, 1] {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
    }
    let mut rest = 0.0;
    for (x, y) in a.iter().zip(b).skip(whole) {
        rest += x * y;
    }
    lanes[0] + rest
}

#[test]
fn every_kernel_gives_the_bits_of_the_plain_sum() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    for dim in [1, 5, 31, 32, 33, 64, 512, 1000, 1024, 1056, 2085, 6144] {
        for (n, k) in [(1, 1), (3, 2), (17, 5)] {
            let mut draw = |n: usize| (0..n * dim).map(|_| rng.gen_range(-1.0..1.0)).collect::<Vec<f32>>();
            let (rows, units) = (draw(n), draw(k));
            let found = similarities(&rows, &units, dim);
            for (row, found) in rows.chunks_exact(dim).zip(found.chunks_exact(k)) {
                let mut alone = vec![0.0; k];
                similarities_of_one(row, &units, &mut alone);
                for ((unit, score), alone) in units.chunks_exact(dim).zip(found).zip(alone) {
                    let expected = plain(row, unit).to_bits();
                    assert_eq!(score.to_bits(), expected, "{n} x {k} x {dim}");
                    assert_eq!((alone.to_bits(), dot(row, unit).to_bits()), (expected, expected));
                }
            }
        }
    }
}

#[test]
fn pairs_have_one_minus_their_product() {
    let rows: Vec<f32> = (0..3 * 700).map(|i| (i % 13) as f32 / 500.0).collect();
    let pairs = [(0u32, 1u32), (2, 0), (1, 1), (0, 9)];
    let row = |i: u32| &rows[i as usize * 700..(i as usize + 1) * 700];
    let found = pair_distances(&rows, 700, &pairs);
    for ((i, j), distance) in pairs[..3].iter().zip(&found) {
        let expected = 1.0 - plain(row(*i), row(*j));
        assert!((distance - expected).abs() < 1e-6);
    }
    assert_eq!(found[3], 1.0);
    assert_eq!(
        pair_products(&rows, 700, (32, 64), &pairs)[2],
        plain(&rows[732..764], &rows[732..764])
    );
}
