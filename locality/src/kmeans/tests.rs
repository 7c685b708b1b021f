use proptest::prelude::*;
use rand::Rng;

use super::*;

fn unit(rows: &[[f32; 2]]) -> Vec<f32> {
    let mut flat = rows.concat();
    for row in flat.chunks_exact_mut(2) {
        normalise(row);
    }
    flat
}

fn close(got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len());
    assert!(
        got.iter().zip(expected).all(|(g, e)| (g - e).abs() < 1e-6),
        "{got:?} is not {expected:?}"
    );
}

fn two(balance: Balance) -> KMeansOptions {
    KMeansOptions {
        clusters: 2,
        balance,
        ..KMeansOptions::default()
    }
}

/// Vectors of the fact sheet.
#[test]
fn balanced_and_plain_match_the_vectors() {
    let warm = [1.0, 0.0, 0.0, 1.0];
    let half = std::f32::consts::FRAC_1_SQRT_2;
    let rows = unit(&[[1.0, 1.0], [-1.0, 1.0], [1.0, 1.0], [-1.0, 1.0]]);
    let found = kmeans(&rows, 2, &[], Some(&warm), &two(Balance::Upper)).unwrap();
    assert_eq!(found.labels, [0, 1, 0, 1]);
    close(&found.centroids, &[half, half, -half, half]);

    let rows = unit(&[[1.0, 0.0], [1.0, 0.05], [1.0, 0.1], [1.0, 0.15], [0.2, 1.0]]);
    let found = kmeans(&rows, 2, &[], Some(&warm), &two(Balance::Upper)).unwrap();
    assert_eq!(found.labels, [0, 0, 0, 1, 1]);
    close(&found.centroids, &[0.998_756_5, 0.049_855, 0.724_046_5, 0.689_751_2]);
    let plain = kmeans(&rows, 2, &[], Some(&warm), &two(Balance::None)).unwrap();
    assert_eq!(plain.labels, [0, 0, 0, 0, 1]);
    close(&plain.centroids, &[0.997_216_5, 0.074_560_2, 0.196_116_1, 0.980_580_7]);
}

#[test]
fn aligned_centroids_keep_their_numbers() {
    let (current, fitted) = ([1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]);
    let numbers = align(&current, &fitted, 2).unwrap();
    assert_eq!(renumber(&fitted, 2, &numbers), current);
    // One cluster more: the old ones keep their numbers, the new one gets the free number.
    let more = [0.0, 1.0, 0.7, 0.7, 1.0, 0.0];
    assert_eq!(align(&current, &more, 2).unwrap(), [1, 2, 0]);
    assert!(align(&current, &[1.0], 2).is_none());
}

#[test]
fn weights_pull_centroids_and_restarts_never_make_it_worse() {
    let rows = unit(&[[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.0]]);
    let even = kmeans(&rows, 2, &[], Some(&[1.0, 0.0, 0.0, 1.0]), &two(Balance::Upper)).unwrap();
    let heavy = kmeans(
        &rows,
        2,
        &[3.0, 1.0, 1.0, 3.0],
        Some(&[1.0, 0.0, 0.0, 1.0]),
        &two(Balance::Upper),
    )
    .unwrap();
    assert!(heavy.centroids[0] > even.centroids[0] && heavy.centroids[2] > even.centroids[2]);

    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    let mut rows: Vec<f32> = (0..300 * 8).map(|_| rng.gen_range(0.0..1.0)).collect();
    rows.chunks_exact_mut(8).for_each(|r| {
        normalise(r);
    });
    let run = |restarts| {
        kmeans(
            &rows,
            8,
            &[],
            None,
            &KMeansOptions {
                clusters: 7,
                restarts,
                ..KMeansOptions::default()
            },
        )
        .unwrap()
    };
    assert_eq!(run(3), run(3));
    assert!(run(6).objective >= run(1).objective);
    for balance in [Balance::Upper, Balance::Even] {
        let found = kmeans(
            &rows,
            8,
            &[],
            None,
            &KMeansOptions {
                clusters: 7,
                balance,
                ..KMeansOptions::default()
            },
        )
        .unwrap();
        let sizes: Vec<usize> = (0..7)
            .map(|c| found.labels.iter().filter(|l| **l == c).count())
            .collect();
        assert!(
            sizes
                .iter()
                .all(|s| *s <= 43 && (balance == Balance::Upper || *s >= 42)),
            "{balance:?} {sizes:?}"
        );
    }
}

#[test]
fn refuses_what_cannot_be_clustered() {
    let rows = unit(&[[1.0, 0.0], [0.0, 1.0]]);
    let three = KMeansOptions {
        clusters: 3,
        ..KMeansOptions::default()
    };
    assert!(matches!(
        kmeans(&rows, 2, &[], None, &three),
        Err(KMeansError::TooFew {
            samples: 2,
            clusters: 3
        })
    ));
    assert!(matches!(
        kmeans(&rows, 3, &[], None, &two(Balance::Upper)),
        Err(KMeansError::Shape(_))
    ));
    assert!(matches!(
        kmeans(&rows, 2, &[1.0], None, &two(Balance::Upper)),
        Err(KMeansError::Shape(_))
    ));
    assert!(matches!(
        kmeans(&[f32::NAN, 0.0, 0.0, 1.0], 2, &[], None, &two(Balance::Upper)),
        Err(KMeansError::NotFinite)
    ));
    assert!(matches!(
        assign_with_capacities(&[0.0; 6], 2, 0, 1),
        Err(TransportError::Capacity { .. })
    ));
    assert!(matches!(
        assign_with_capacities(&[0.0; 5], 2, 0, 3),
        Err(TransportError::Costs)
    ));
}

#[test]
fn sizes_follow_the_asked_bounds_in_samples_or_requests() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    // Two thirds of the rows lie together, so that every bound matters.
    let mut rows: Vec<f32> = (0..240 * 6)
        .map(|i| rng.gen_range(0.0..1.0) + if i / 6 < 160 && i % 6 == 0 { 4.0 } else { 0.0 })
        .collect();
    rows.chunks_exact_mut(6).for_each(|r| {
        normalise(r);
    });
    let sizes = |balance, weights: &[f32]| {
        let options = KMeansOptions {
            clusters: 4,
            balance,
            ..KMeansOptions::default()
        };
        let found = kmeans(&rows, 6, weights, None, &options).unwrap();
        let mut sizes = vec![0.0f32; 4];
        for (i, label) in found.labels.iter().enumerate() {
            sizes[*label as usize] += weights.get(i).copied().unwrap_or(1.0);
        }
        sizes
    };
    let within = Balance::Within { least: 50, most: 120 };
    let found = sizes(within, &[]);
    assert!(found.iter().all(|s| (30.0..=72.0).contains(s)), "{found:?}");
    assert!(found.iter().any(|s| *s > 60.0), "{found:?}");
    assert_eq!(sizes(Balance::Even, &[]), [60.0; 4]);
    // Equal weights of another scale change nothing.
    assert_eq!(
        sizes(within, &[2.5; 240]),
        found.iter().map(|s| s * 2.5).collect::<Vec<_>>()
    );
    // The rows that lie together stand for three requests each: 560 in all, 140 for each cluster, give or take split samples.
    let weights: Vec<f32> = (0..240).map(|i| if i < 160 { 3.0 } else { 1.0 }).collect();
    let found = sizes(Balance::Even, &weights);
    assert!(found.iter().all(|s| (s - 140.0).abs() <= 9.0), "{found:?}");
    let bad = KMeansOptions {
        clusters: 2,
        balance: Balance::Within { least: 101, most: 200 },
        ..KMeansOptions::default()
    };
    assert!(matches!(kmeans(&rows, 6, &[], None, &bad), Err(KMeansError::Shape(_))));
}

/// More samples than first centroids are chosen from: still every restart and thread count gives the same, and it finds the domains.
#[test]
fn many_samples_start_from_a_part_of_them() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(12);
    let mut rows: Vec<f32> = (0..600 * 5)
        .map(|i| rng.gen_range(0.0..0.3) + if i % 5 == i / 5 % 3 { 1.0 } else { 0.0 })
        .collect();
    rows.chunks_exact_mut(5).for_each(|r| {
        normalise(r);
    });
    let options = KMeansOptions {
        clusters: 3,
        ..KMeansOptions::default()
    };
    let found = kmeans(&rows, 5, &[], None, &options).unwrap();
    assert!((0..600).all(|i| found.labels[i] == found.labels[i % 3]));
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(single.install(|| kmeans(&rows, 5, &[], None, &options).unwrap()), found);
}

/// The cheapest assignment by trying every one.
fn brute_force(costs: &[f32], k: usize, lower: usize, upper: usize) -> f64 {
    let n = costs.len() / k;
    let mut best = f64::INFINITY;
    for code in 0..k.pow(n as u32) {
        let (mut rest, mut sizes, mut sum) = (code, vec![0usize; k], 0.0);
        for row in costs.chunks_exact(k) {
            sum += f64::from(row[rest % k]);
            sizes[rest % k] += 1;
            rest /= k;
        }
        if sizes.iter().all(|s| (lower..=upper).contains(s)) && sum < best {
            best = sum;
        }
    }
    best
}

fn total(costs: &[f32], k: usize, labels: &[u32]) -> f64 {
    costs
        .chunks_exact(k)
        .zip(labels)
        .map(|(row, l)| f64::from(row[*l as usize]))
        .sum()
}

/// An independent check of optimality at any size: no chain of moves between clusters may be worth making (Bellman-Ford finds no negative
/// cycle in the graph of cheapest moves, where a node for the outside stands for room and for size above the lower bound).
fn is_optimal(costs: &[f32], k: usize, lower: usize, upper: usize, labels: &[u32]) -> bool {
    let sizes: Vec<usize> = (0..k)
        .map(|c| labels.iter().filter(|l| **l as usize == c).count())
        .collect();
    let mut edge = vec![f64::INFINITY; (k + 1) * (k + 1)];
    for (row, a) in costs.chunks_exact(k).zip(labels) {
        for (b, cost) in row.iter().enumerate() {
            let move_cost = f64::from(*cost) - f64::from(row[*a as usize]);
            let slot = &mut edge[*a as usize * (k + 1) + b];
            *slot = slot.min(move_cost);
        }
    }
    for (c, size) in sizes.iter().enumerate() {
        if *size < upper {
            edge[c * (k + 1) + k] = 0.0;
        }
        if *size > lower {
            edge[k * (k + 1) + c] = 0.0;
        }
    }
    let mut distance = vec![0.0f64; k + 1];
    for _ in 0..=k {
        for a in 0..=k {
            for b in 0..=k {
                distance[b] = distance[b].min(distance[a] + edge[a * (k + 1) + b]);
            }
        }
    }
    (0..=k).all(|a| (0..=k).all(|b| distance[b] <= distance[a] + edge[a * (k + 1) + b] + 1e-6))
}

proptest! {
    #![proptest_config(crate::property::config())]

    #[test]
    fn assignment_is_the_brute_force_optimum(
        k in 1usize..4, n in 1usize..7, seed in any::<u64>(), slack in 0usize..2, even in any::<bool>(), coarse in any::<bool>(),
    ) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let costs: Vec<f32> = (0..n * k)
            .map(|_| if coarse { f32::from(rng.gen_range(-2i8..3)) } else { rng.gen_range(0.0..2.0) })
            .collect();
        let (lower, upper) = (if even { n / k } else { 0 }, n.div_ceil(k) + slack);
        let labels = assign_with_capacities(&costs, k, lower, upper).unwrap();
        let best = brute_force(&costs, k, lower, upper);
        prop_assert!((total(&costs, k, &labels) - best).abs() < 1e-5);
        prop_assert!(is_optimal(&costs, k, lower, upper, &labels));
    }

    #[test]
    fn large_assignments_are_optimal_and_within_bounds(seed in any::<u64>(), k in 2usize..17, even in any::<bool>(), skew in 0.0f32..3.0) {
        let n = 400;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let costs: Vec<f32> = (0..n * k).map(|i| rng.gen_range(0.0f32..1.0) + if i % k == 0 { 0.0 } else { skew }).collect();
        let (lower, upper) = (if even { n / k } else { 0 }, n.div_ceil(k));
        let labels = assign_with_capacities(&costs, k, lower, upper).unwrap();
        for c in 0..k as u32 {
            let size = labels.iter().filter(|l| **l == c).count();
            prop_assert!((lower..=upper).contains(&size));
        }
        prop_assert!(is_optimal(&costs, k, lower, upper, &labels));
    }

    /// An independent solver: every cluster as many columns as it may have members, for the Hungarian method.
    #[test]
    fn large_assignments_cost_what_the_hungarian_method_finds(seed in any::<u64>(), k in 2usize..9, n in 20usize..90, even in any::<bool>()) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        // Whole numbers below 2^20 are exact in both.
        let costs: Vec<f32> = (0..n * k).map(|i| (rng.gen_range(0u32..1 << 18) >> (i % k)) as f32).collect();
        let (lower, upper) = (if even { n / k } else { 0 }, n.div_ceil(k));
        let labels = assign_with_capacities(&costs, k, lower, upper).unwrap();
        // Columns up to the lower bound are so cheap that they are all taken.
        let reward = 1i64 << 40;
        let column = |j: usize| (j / upper, if j % upper < lower { reward } else { 0 });
        let matrix = pathfinding::matrix::Matrix::from_fn(n, k * upper, |(i, j)| {
            let (cluster, reward) = column(j);
            costs[i * k + cluster] as i64 - reward
        });
        let (least, _) = pathfinding::kuhn_munkres::kuhn_munkres_min(&matrix);
        let own: i64 = labels.iter().enumerate().map(|(i, l)| costs[i * k + *l as usize] as i64).sum();
        prop_assert_eq!(own, least + reward * (k * lower) as i64);
    }

    #[test]
    fn permuting_samples_changes_labels_and_nothing_else(seed in any::<u64>(), k in 2usize..6, even in any::<bool>()) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (n, dim) = (60, 7);
        let mut rows: Vec<f32> = (0..n * dim).map(|_| rng.gen_range(0.0f32..1.0).powi(3)).collect();
        rows.chunks_exact_mut(dim).for_each(|r| {
            normalise(r);
        });
        let warm = rows[..k * dim].to_vec();
        let mut order: Vec<usize> = (0..n).collect();
        rand::seq::SliceRandom::shuffle(&mut order[..], &mut rng);
        let shuffled: Vec<f32> = order.iter().flat_map(|i| rows[i * dim..(i + 1) * dim].to_vec()).collect();
        let options = KMeansOptions { clusters: k, balance: if even { Balance::Even } else { Balance::Upper }, ..KMeansOptions::default() };
        let a = kmeans(&rows, dim, &[], Some(&warm), &options).unwrap();
        let b = kmeans(&shuffled, dim, &[], Some(&warm), &options).unwrap();
        prop_assert!((a.objective - b.objective).abs() < 1e-5);
        for (at, i) in order.iter().enumerate() {
            prop_assert_eq!(b.labels[at], a.labels[*i]);
        }
    }

    #[test]
    fn permuting_samples_changes_no_objective(seed in any::<u64>()) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (n, k) = (60, 5);
        let costs: Vec<f32> = (0..n * k).map(|_| rng.gen_range(0.0..1.0)).collect();
        let reversed: Vec<f32> = costs.chunks_exact(k).rev().flatten().copied().collect();
        let a = assign_with_capacities(&costs, k, 0, 12).unwrap();
        let b = assign_with_capacities(&reversed, k, 0, 12).unwrap();
        prop_assert!((total(&costs, k, &a) - total(&reversed, k, &b)).abs() < 1e-4);
    }
}
