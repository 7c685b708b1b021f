use coterie_crds::admin::{Slide, Source, StatisticsReport};
use coterie_locality::drift::{Thresholds, Verdict};

use crate::{
    drift::{
        baselines,
        coverage::Coverage,
        memory::Remembered,
        window::{Combined, Unusable, combine},
    },
    testing::table,
};

const SLIDE_MS: u64 = 5000;

fn slide(index: u64, digest: &str, counts: [u64; 4], fit: f64) -> Slide {
    let requests: u64 = counts.iter().sum();
    let n = requests as f64;
    Slide {
        index,
        digest: Some(digest.into()),
        requests,
        signed: requests,
        cluster_counts: counts.into(),
        fit_sum: n * fit,
        fit_sum_squares: n * (fit * fit + 0.003),
        ..Slide::default()
    }
}

fn report(now_slide: u64, slides: Vec<Slide>) -> StatisticsReport {
    StatisticsReport {
        slide_ms: SLIDE_MS,
        now_ms: now_slide * SLIDE_MS + 1,
        slides,
    }
}

fn advance(memory: &mut Remembered, combined: &Combined, sustain: u32) -> Verdict {
    let baselines = baselines::of(&table("t", 1, None)).unwrap();
    let slides = combined.under(&memory.digest).unwrap();
    memory.advance(
        &baselines,
        &slides,
        combined.last_complete,
        &Thresholds::default(),
        sustain,
    );
    memory.last.map_or(Verdict::InsufficientSamples, |(_, verdict)| verdict)
}

fn remembered(digest: &str) -> Remembered {
    Remembered {
        digest: digest.into(),
        ..Remembered::default()
    }
}

#[test]
fn routers_add_up_and_the_slowest_clock_decides_what_is_complete() {
    let a = report(10, vec![slide(8, "t", [10, 10, 10, 10], 0.8)]);
    let b = report(9, vec![slide(8, "t", [1, 2, 3, 4], 0.8)]);
    let combined = combine(&[a, b], SLIDE_MS).unwrap();
    assert_eq!(combined.last_complete, 8);
    let merged = combined.under("t").unwrap();
    assert_eq!(merged[0].requests, 50);
    assert_eq!(merged[0].cluster_counts, [11.0, 12.0, 13.0, 14.0]);
}

#[test]
fn routers_of_another_window_are_not_judged() {
    let mut old = report(10, Vec::new());
    old.slide_ms = 1000;
    let refused = combine(&[old], SLIDE_MS);
    assert_eq!(
        refused,
        Err(Unusable::OtherWindow {
            got: 1000,
            wanted: SLIDE_MS
        })
    );
    assert_eq!(combine(&[], SLIDE_MS), Err(Unusable::NoRouter));
}

#[test]
fn lasting_skew_is_drift_after_sustain_slides() {
    let mut memory = remembered("t");
    let mut slides: Vec<Slide> = (0..8).map(|i| slide(i, "t", [20, 20, 20, 20], 0.8)).collect();
    let poll = |memory: &mut Remembered, slides: &[Slide], now| {
        let combined = combine(&[report(now, slides.to_vec())], SLIDE_MS).unwrap();
        advance(memory, &combined, 2)
    };
    assert_eq!(poll(&mut memory, &slides, 8), Verdict::Stable);
    slides.extend((8..12).map(|i| slide(i, "t", [77, 1, 1, 1], 0.8)));
    let verdicts: Vec<Verdict> = (9..=12).map(|now| poll(&mut memory, &slides, now)).collect();
    assert_eq!(verdicts.last(), Some(&Verdict::Drifted), "{verdicts:?}");
    assert!(verdicts.contains(&Verdict::Suspected), "{verdicts:?}");
    let onset = memory.state.onset().unwrap();
    assert!((9..=11).contains(&onset), "onset {onset}");
}

#[test]
fn a_late_poll_judges_all_slides_in_between() {
    let slides: Vec<Slide> = (0..20).map(|i| slide(i, "t", [77, 1, 1, 1], 0.8)).collect();
    let mut memory = remembered("t");
    let combined = combine(&[report(20, slides)], SLIDE_MS).unwrap();
    assert_eq!(
        advance(&mut memory, &combined, 2),
        Verdict::Drifted,
        "history is enough, even after a restart"
    );
}

#[test]
fn slides_of_another_table_say_nothing() {
    let slides: Vec<Slide> = (0..8).map(|i| slide(i, "old", [77, 1, 1, 1], 0.8)).collect();
    let combined = combine(&[report(8, slides)], SLIDE_MS).unwrap();
    let mut memory = remembered("t");
    assert_eq!(advance(&mut memory, &combined, 2), Verdict::InsufficientSamples);
    assert!(memory.last.is_none());
}

#[test]
fn coverage_tells_missing_from_malformed_experts() {
    let reason = |signed: u64, missing: &[(&str, u64)]| {
        let mut slide = slide(8, "t", [signed, 0, 0, 0], 0.8);
        slide.missing = missing.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
        let combined = combine(&[report(9, vec![slide])], SLIDE_MS).unwrap();
        Coverage::of(&combined).verdict().reason
    };
    assert_eq!(reason(95, &[("Missing", 5)]), "Covered");
    assert_eq!(reason(5, &[("Missing", 95)]), "ExpertsMissing");
    assert_eq!(reason(5, &[("Malformed", 60), ("Missing", 35)]), "ExpertsMalformed");
    assert_eq!(reason(5, &[("Geometry", 95)]), "ExpertsMalformed");
    assert_eq!(reason(0, &[]), "NoTraffic");
}

#[test]
fn text_signs_what_counts_do_not_and_is_judged_apart() {
    let text = |signed: u64, missing: &[(&str, u64)]| Slide {
        source: Source::Text,
        missing: missing.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect(),
        ..slide(8, "t", [signed, 0, 0, 0], 0.2)
    };
    let verdict = |slides: &[Slide]| {
        let combined = combine(&[report(9, slides.to_vec())], SLIDE_MS).unwrap();
        let judged: u64 = combined.under("t").unwrap().iter().map(|s| s.signed).sum();
        let coverage = Coverage::of(&combined);
        (coverage.verdict().reason, coverage.source(), judged)
    };
    let counted = slide(8, "t", [60, 0, 0, 0], 0.8);
    assert_eq!(verdict(&[text(99, &[])]), ("Covered", "Text", 0));
    assert_eq!(verdict(&[counted.clone(), text(40, &[])]), ("Covered", "Mixed", 60));
    assert_eq!(verdict(&[counted, text(2, &[])]), ("Covered", "Prefill", 60));
    assert_eq!(verdict(&[text(5, &[("NoText", 95)])]), ("TextMissing", "Text", 0));
    assert_eq!(verdict(&[text(0, &[("NoTextSource", 9)])]), ("NoTextSource", "None", 0));
}
