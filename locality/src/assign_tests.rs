use proptest::prelude::*;

use super::*;

fn names(n: usize) -> Vec<String> {
    let mut names: Vec<String> = (0..n).map(|i| format!("fleet-decode-{i}")).collect();
    names.sort();
    names
}

fn check_covers(shares: &[f64], workers: &[String], known: &BTreeMap<String, Vec<u32>>) -> Assignment {
    let assignment = assign(shares, workers, known);
    assert_eq!(assignment.workers(), workers.len());
    if !workers.is_empty() && !shares.is_empty() {
        assert!(
            (0..workers.len()).all(|w| !assignment.clusters_of(w).is_empty()),
            "{assignment:?}"
        );
        for cluster in 0..shares.len() as u32 {
            assert!(
                (0..workers.len()).any(|w| assignment.clusters_of(w).contains(&cluster)),
                "{assignment:?}"
            );
        }
    }
    assignment
}

/// Share of traffic that a worker gets of clusters it did not have: what starts cold. A cluster's traffic is spread evenly over its workers.
fn cold(shares: &[f64], old: &BTreeMap<String, Vec<u32>>, new: &BTreeMap<String, Vec<u32>>) -> f64 {
    let total: f64 = shares.iter().sum();
    (0..shares.len() as u32)
        .map(|c| {
            let owners: Vec<&String> = new.iter().filter(|(_, own)| own.contains(&c)).map(|(n, _)| n).collect();
            let fresh = owners
                .iter()
                .filter(|n| !old.get(**n).is_some_and(|own| own.contains(&c)))
                .count();
            shares[c as usize] / total * fresh as f64 / owners.len() as f64
        })
        .sum()
}

/// Traffic of the most loaded worker.
fn heaviest(shares: &[f64], assignment: &BTreeMap<String, Vec<u32>>) -> f64 {
    let total: f64 = shares.iter().sum();
    let owners = |c: u32| assignment.values().filter(|own| own.contains(&c)).count() as f64;
    let load = |own: &Vec<u32>| {
        own.iter()
            .map(|c| shares[*c as usize] / total / owners(*c))
            .sum::<f64>()
    };
    assignment.values().map(load).fold(0.0, f64::max)
}

/// Every assignment that gives each worker a cluster and each cluster a worker.
fn every(workers: &[String], clusters: usize) -> Vec<BTreeMap<String, Vec<u32>>> {
    let sets = (1u32 << clusters) - 1;
    (0..sets.pow(workers.len() as u32))
        .filter_map(|mut code| {
            let mut covered = 0;
            let assignment = workers
                .iter()
                .map(|name| {
                    let set = code % sets + 1;
                    code /= sets;
                    covered |= set;
                    (
                        name.clone(),
                        (0..clusters as u32).filter(|c| set >> c & 1 == 1).collect(),
                    )
                })
                .collect();
            (covered == sets).then_some(assignment)
        })
        .collect()
}

#[test]
fn a_newcomer_takes_its_fair_part_of_a_crowded_worker() {
    let shares = [0.125; 8];
    let known = BTreeMap::from([("a".to_owned(), (0..8).collect())]);
    let two = ["a", "b"].map(str::to_owned);
    let after = check_covers(&shares, &two, &known).by_name(&two);
    assert_eq!((after["a"].len(), after["b"].len()), (4, 4));
    let three = ["a", "b", "c"].map(str::to_owned);
    let third = check_covers(&shares, &three, &after).by_name(&three);
    assert!(third.values().all(|own| (2..=3).contains(&own.len())), "{third:?}");
    assert!(cold(&shares, &after, &third) <= 0.375);
}

/// Share of traffic whose set of workers differs between two assignments.
fn moved(shares: &[f64], a: &BTreeMap<String, Vec<u32>>, b: &BTreeMap<String, Vec<u32>>) -> f64 {
    let owners = |m: &BTreeMap<String, Vec<u32>>, cluster: usize| {
        m.iter()
            .filter(|(_, c)| c.contains(&(cluster as u32)))
            .map(|(n, _)| n.clone())
            .collect::<Vec<_>>()
    };
    let total: f64 = shares.iter().sum();
    shares
        .iter()
        .enumerate()
        .map(|(c, share)| {
            let (old, new) = (owners(a, c), owners(b, c));
            let kept = old.iter().filter(|o| new.contains(o)).count() as f64;
            share / total * (1.0 - kept / old.len().max(new.len()) as f64)
        })
        .sum()
}

#[test]
fn one_cluster_each_when_numbers_agree() {
    let assignment = check_covers(&[0.25; 4], &names(4), &BTreeMap::new());
    assert!((0..4).all(|w| assignment.clusters_of(w).len() == 1));
}

#[test]
fn busy_clusters_get_the_spare_workers() {
    let assignment = check_covers(&[0.7, 0.2, 0.1], &names(6), &BTreeMap::new());
    let owners = |c: u32| (0..6).filter(|w| assignment.clusters_of(*w).contains(&c)).count();
    assert_eq!((owners(0), owners(1), owners(2)), (4, 1, 1));
}

#[test]
fn few_workers_share_the_clusters_evenly() {
    let assignment = check_covers(&[0.125; 8], &names(3), &BTreeMap::new());
    let sizes: Vec<usize> = (0..3).map(|w| assignment.clusters_of(w).len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 8);
    assert!(sizes.iter().all(|s| (2..=4).contains(s)), "{sizes:?}");
}

#[test]
fn what_is_known_stays_and_gaps_are_filled() {
    let workers = names(4);
    let shares = [0.25; 4];
    let known = check_covers(&shares, &workers, &BTreeMap::new()).by_name(&workers);
    assert_eq!(check_covers(&shares, &workers, &known).by_name(&workers), known);
    // One worker gone: its cluster goes to one other, nothing else moves.
    let fewer: Vec<String> = workers[..3].to_vec();
    let after = check_covers(&shares, &fewer, &known).by_name(&fewer);
    let doubled: Vec<_> = after.values().filter(|c| c.len() == 2).collect();
    assert_eq!(doubled.len(), 1);
    assert!(fewer.iter().all(|n| after[n].contains(&known[n][0])));
    // It comes back and is given that cluster's load, or an equal one, again.
    let back = check_covers(&shares, &workers, &after).by_name(&workers);
    assert!(back.values().all(|c| c.len() == 1), "{back:?}");
    // One worker more shares a cluster; nobody moves.
    let five = names(5);
    let grown = check_covers(&shares, &five, &known).by_name(&five);
    assert!(workers.iter().all(|n| grown[n] == known[n]) && grown[&five[4]].len() == 1);
}

#[test]
fn a_last_owner_that_leaves_is_replaced_by_a_spare_one() {
    let known: BTreeMap<String, Vec<u32>> = [("a", vec![0]), ("b", vec![0]), ("c", vec![0]), ("d", vec![1])]
        .map(|(n, c)| (n.to_owned(), c))
        .into();
    let workers = ["a", "b", "c"].map(str::to_owned).to_vec();
    let assignment = check_covers(&[0.5, 0.5], &workers, &known);
    assert!((0..3).all(|w| assignment.clusters_of(w).len() == 1));
}

#[test]
fn nonsense_in_the_known_assignment_is_ignored() {
    let workers = names(2);
    let known = BTreeMap::from([
        (workers[0].clone(), vec![7, 0, 0, u32::MAX]),
        ("gone".to_owned(), vec![1]),
    ]);
    check_covers(&[0.5, 0.5], &workers, &known);
    check_covers(&[f64::NAN, -1.0, 0.0], &workers, &known);
    check_covers(&[], &workers, &known);
    check_covers(&[1.0], &[], &known);
}

#[test]
fn similarity_is_the_best_of_a_workers_clusters() {
    let workers = ["a", "b"].map(str::to_owned);
    let known = BTreeMap::from([("a".to_owned(), vec![0, 2]), ("b".to_owned(), vec![1])]);
    let assignment = assign(&[0.3, 0.4, 0.3], &workers, &known);
    let mut out = [0.0; 2];
    assignment.similarity(&[0.1, 0.5, 0.7], &mut out);
    assert_eq!(out, [0.7, 0.5]);
}

proptest! {
    #![proptest_config(crate::property::config())]

    #[test]
    fn always_covers_and_is_a_pure_function(shares in proptest::collection::vec(0.0f64..1.0, 1..20), n in 1usize..24, gone in 0usize..24) {
        let workers = names(n);
        let first = check_covers(&shares, &workers, &BTreeMap::new());
        prop_assert_eq!(&first, &assign(&shares, &workers, &BTreeMap::new()));
        let known = first.by_name(&workers);
        let mut rest = workers.clone();
        rest.remove(gone % n);
        check_covers(&shares, &rest, &known);
        check_covers(&shares, &names(n + 3), &known);
    }

    /// With the assignment known, a worker that leaves moves at most its own traffic and that of one worker that takes its place.
    #[test]
    fn a_leaving_worker_moves_little(shares in proptest::collection::vec(0.5f64..1.0, 2..12), n in 2usize..24, gone in 0usize..24) {
        let workers = names(n);
        let known = assign(&shares, &workers, &BTreeMap::new()).by_name(&workers);
        let mut rest = workers.clone();
        let name = rest.remove(gone % n);
        let after = assign(&shares, &rest, &known).by_name(&rest);
        let changed = rest.iter().filter(|w| known[*w] != after[*w]).count();
        prop_assert!(changed <= known[&name].len(), "{} workers changed", changed);
    }

    /// Without any known assignment, one worker more or less leaves most traffic where it is.
    #[test]
    fn even_a_fresh_assignment_is_stable(shares in proptest::collection::vec(0.5f64..1.0, 4..12), n in 4usize..24) {
        let (small, large) = (names(n), names(n + 1));
        let a = assign(&shares, &small, &BTreeMap::new()).by_name(&small);
        let b = assign(&shares, &large, &BTreeMap::new()).by_name(&large);
        prop_assert!(moved(&shares, &a, &b) < 0.7);
    }

    /// A worker that leaves moves the traffic of clusters that only it had, and no assignment moves less.
    #[test]
    fn leaving_moves_the_least_traffic_there_is(shares in proptest::collection::vec(0.05f64..1.0, 2..5), n in 2usize..5, gone in 0usize..4) {
        let workers = names(n);
        let known = assign(&shares, &workers, &BTreeMap::new()).by_name(&workers);
        let mut rest = workers.clone();
        rest.remove(gone % n);
        let after = assign(&shares, &rest, &known).by_name(&rest);
        let least = every(&rest, shares.len()).iter().map(|other| cold(&shares, &known, other)).fold(f64::INFINITY, f64::min);
        prop_assert!(cold(&shares, &known, &after) <= least + 1e-9, "{:?} to {:?}, {}", known, after, least);
    }

    /// A worker that joins gets all that moves; no worker is more loaded than before; and of all assignments that load no worker more than
    /// this one, none moves less traffic by more than one cluster.
    #[test]
    fn joining_moves_little_more_than_the_least(shares in proptest::collection::vec(0.05f64..1.0, 2..5), n in 1usize..4) {
        let workers = names(n);
        let known = assign(&shares, &workers, &BTreeMap::new()).by_name(&workers);
        let more = names(n + 1);
        let newcomer = more.iter().find(|w| !workers.contains(w)).unwrap();
        let after = assign(&shares, &more, &known).by_name(&more);
        for worker in &workers {
            prop_assert!(after[worker].iter().all(|c| known[worker].contains(c)), "{:?} to {:?}", known, after);
        }
        let (moved, load) = (cold(&shares, &known, &after), heaviest(&shares, &after));
        prop_assert!(load <= heaviest(&shares, &known) + 1e-9);
        let least = every(&more, shares.len())
            .iter()
            .filter(|other| heaviest(&shares, other) <= load + 1e-9)
            .map(|other| cold(&shares, &known, other))
            .fold(f64::INFINITY, f64::min);
        let total: f64 = shares.iter().sum();
        let largest = after[newcomer].iter().map(|c| shares[*c as usize] / total).fold(0.0, f64::max);
        prop_assert!(moved <= least + largest + 1e-9, "{:?} to {:?}: {} against {}", known, after, moved, least);
    }

    /// Routers that hear of the same workers one by one, or in any order, and so hold the same known assignment, agree.
    #[test]
    fn leaving_and_coming_back_never_loses_a_cluster(shares in proptest::collection::vec(0.05f64..1.0, 1..12), steps in proptest::collection::vec(1usize..14, 1..8)) {
        let mut known = BTreeMap::new();
        for n in steps {
            let workers = names(n);
            let assignment = check_covers(&shares, &workers, &known);
            prop_assert_eq!(&assignment, &assign(&shares, &workers, &known));
            known = assignment.by_name(&workers);
            // Settled: asking again changes nothing.
            prop_assert_eq!(assign(&shares, &workers, &known), assignment);
        }
    }
}
