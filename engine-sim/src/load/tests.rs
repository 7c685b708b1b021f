use std::collections::BTreeMap;
use std::path::Path;

use super::args::Part;
use super::plan::{Mix, Planner};
use crate::recording::Recording;

fn recording() -> Recording {
    Recording::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/tiny-moe.npz")).unwrap()
}

fn mix(domains: &[&str]) -> anyhow::Result<Mix> {
    part(domains, Part::All)
}

fn part(domains: &[&str], part: Part) -> anyhow::Result<Mix> {
    let domains: Vec<String> = domains.iter().map(|d| (*d).to_owned()).collect();
    Mix::parse(&domains, &recording(), part)
}

#[test]
fn even_and_odd_share_no_request_and_miss_none() {
    let draw = |which| Planner::new(part(&["ja", "zh"], which).unwrap(), 1, 1.0).distinct(usize::MAX);
    let mut both = [draw(Part::Even), draw(Part::Odd)].concat();
    let mut all = draw(Part::All);
    both.sort_unstable();
    all.sort_unstable();
    assert_eq!(both, all);
}

#[test]
fn plans_follow_weights_and_rate_and_repeat_with_the_seed() {
    let recording = recording();
    let draw = |seed| {
        let mut planner = Planner::new(mix(&["python=3", "zh"]).unwrap(), seed, 50.0);
        (0..4000).map(|_| planner.next_request()).collect::<Vec<_>>()
    };
    let plan = draw(7);
    assert_eq!(plan, draw(7));
    assert_ne!(plan, draw(8));
    let mut counts = BTreeMap::new();
    for planned in &plan {
        *counts.entry(recording.domain(planned.request)).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 2);
    assert!((2850..3150).contains(&counts["python"]), "{counts:?}");
    let mean_gap = plan.iter().map(|p| p.gap).sum::<f64>() / 4000.0;
    assert!((0.018..0.022).contains(&mean_gap), "{mean_gap}");
}

#[test]
fn every_request_of_a_domain_comes_before_any_comes_again() {
    let mut planner = Planner::new(mix(&["ja"]).unwrap(), 1, 1.0);
    assert_eq!(planner.distinct(1000).len(), 85);
    let mut planner = Planner::new(mix(&["ja"]).unwrap(), 1, 1.0);
    let mut first: Vec<usize> = (0..85).map(|_| planner.next_request().request).collect();
    first.sort_unstable();
    first.dedup();
    assert_eq!(first.len(), 85);
}

#[test]
fn bad_mixes_are_refused_with_what_there_is() {
    assert!(mix(&["klingon"]).unwrap_err().to_string().contains("python"));
    for bad in [&["python=0"][..], &["python=x"], &["zh", "zh=2"]] {
        assert!(mix(bad).is_err(), "{bad:?}");
    }
}
