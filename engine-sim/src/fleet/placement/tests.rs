use coterie_locality::Geometry;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Copies, Placement, StepCost, activation_chances};
use crate::fleet::gates::Choices;

/// Skewed loads, another for each seed.
fn loads(geometry: &Geometry, seed: u64) -> Vec<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..geometry.cells()).map(|_| rng.r#gen::<f64>().powi(4)).collect()
}

fn made(geometry: Geometry, ranks: usize, redundant: usize, load: &[f64]) -> [Placement; 3] {
    [
        Placement::linear(geometry, ranks, redundant).unwrap(),
        Placement::balanced(geometry, ranks, redundant, load).unwrap(),
        Placement::balanced(geometry, ranks, redundant, &activation_chances(load, 8.0)).unwrap(),
    ]
}

#[test]
fn every_placement_holds_all_experts_in_equal_numbers_and_none_is_worse_than_linear() {
    for (experts, ranks, redundant) in [
        (64, 4, 0),
        (64, 8, 8),
        (128, 16, 0),
        (128, 16, 16),
        (256, 8, 32),
        (6, 3, 6),
    ] {
        let geometry = Geometry::new(3, experts, 2).unwrap();
        for seed in 0..20 {
            let load = loads(&geometry, seed);
            let placements = made(geometry, ranks, redundant, &load);
            for placement in &placements {
                // The check of `new` is the property.
                Placement::new(geometry, ranks, placement.layers().to_vec()).unwrap();
                assert_eq!(placement.per_rank() * ranks, experts + redundant);
                let json = placement.to_json(2).unwrap();
                assert_eq!(
                    *placement,
                    Placement::from_json(json.as_bytes(), geometry, ranks, 2).unwrap()
                );
            }
            let chances = activation_chances(&load, 8.0);
            for layer in 0..3 {
                let cells = layer * experts..(layer + 1) * experts;
                let worst = |p: &Placement, l: &[f64]| p.heaviest_rank(layer, &l[cells.clone()]);
                assert!(worst(&placements[1], &load) <= worst(&placements[0], &load));
                assert!(worst(&placements[2], &chances) <= worst(&placements[0], &chances));
            }
        }
    }
}

#[test]
fn balance_is_close_to_equal_where_loads_allow() {
    let geometry = Geometry::new(4, 128, 8).unwrap();
    let load = loads(&geometry, 3);
    let [linear, balanced, _] = made(geometry, 8, 16, &load);
    for layer in 0..4 {
        let cells = &load[layer * 128..(layer + 1) * 128];
        let mean = cells.iter().sum::<f64>() / 8.0;
        assert!(balanced.heaviest_rank(layer, cells) < 1.03 * mean);
        assert!(linear.heaviest_rank(layer, cells) > 1.1 * mean);
    }
}

#[test]
fn a_step_counts_the_slowest_rank_and_copies_as_told() {
    let geometry = Geometry::new(1, 4, 2).unwrap();
    // Rank 0 holds experts 0 1 2, rank 1 holds 3 0 1.
    let placement = Placement::new(geometry, 2, vec![vec![0, 1, 2, 3, 0, 1]]).unwrap();
    let choices = Choices::new(geometry, &[0, 1, 0, 2, 0, 1]).unwrap();
    let step = |copies, tokens: usize| {
        let mut cost = StepCost::new(&placement, copies);
        for token in 0..tokens {
            cost.add(&choices, token);
        }
        let ranks = cost.finish();
        assert_eq!(cost.finish().slowest, 0, "the next step starts empty");
        (ranks.slowest, ranks.activated, ranks.distinct)
    };
    // Experts 0 (3 tokens), 1 (2), 2 (1): spread reads 0 and 1 on both ranks.
    assert_eq!(step(Copies::Spread, 3), (3, 5, 3));
    // One copy each: 2 on rank 0 as it must, then 0 on rank 1, then 1 on either.
    assert_eq!(step(Copies::One, 3), (2, 3, 3));
    // A single token reads one copy of each either way.
    assert_eq!(step(Copies::Spread, 1).1, 2);
    assert_eq!(step(Copies::One, 1), (1, 2, 2));
}

#[test]
fn on_one_rank_the_slowest_rank_has_the_distinct_experts() {
    let geometry = Geometry::new(2, 8, 2).unwrap();
    let choices = Choices::new(geometry, &[0, 1, 2, 3, 0, 2, 2, 4]).unwrap();
    let mut cost = StepCost::new(&Placement::linear(geometry, 1, 0).unwrap(), Copies::Spread);
    (0..2).for_each(|token| cost.add(&choices, token));
    let ranks = cost.finish();
    assert_eq!((ranks.slowest, ranks.distinct), (6, 6));
}

#[test]
fn impossible_placements_are_refused() {
    let geometry = Geometry::new(1, 4, 2).unwrap();
    assert!(
        Placement::linear(geometry, 3, 0)
            .unwrap_err()
            .to_string()
            .contains("redundant")
    );
    assert!(Placement::linear(geometry, 0, 0).is_err());
    assert!(Placement::new(geometry, 2, vec![vec![0, 1, 2, 2]]).is_err());
    assert!(Placement::new(geometry, 2, vec![vec![0, 1, 2, 9]]).is_err());
    assert!(Placement::new(geometry, 2, vec![]).is_err());
    assert!(Placement::balanced(geometry, 2, 0, &[1.0, -1.0, 0.0, 0.0]).is_err());
    assert!(Placement::from_json(b"[]", geometry, 2, 0).is_err());
    let counts = br#"{"logical_count": [[1]]}"#;
    assert!(
        Placement::from_json(counts, geometry, 2, 0)
            .unwrap_err()
            .to_string()
            .contains("physical_to_logical_map")
    );
}
