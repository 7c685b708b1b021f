use super::*;
use crate::table::Baselines;

fn baselines() -> Baselines {
    Baselines {
        requests: 300,
        fit_mean: 0.8,
        fit_se: 0.004,
        skew: 1.2,
        cluster_shares: vec![0.25; 4],
        ..Baselines::default()
    }
}

/// A slide with `n` signed requests of mean fit `fit` (spread 0.05), of which `busiest` of the share goes to cluster 0.
fn slide(index: u64, n: u64, fit: f64, busiest: f64) -> SlideSummary {
    let mut s = SlideSummary::new(index, "table", 4);
    for i in 0..n {
        let wobble = if i % 2 == 0 { 0.05 } else { -0.05 };
        let cluster = if (i as f64) < busiest * n as f64 {
            0
        } else {
            1 + (i % 3) as usize
        };
        s.record_signed(cluster, (fit + wobble) as f32);
    }
    s
}

#[test]
fn same_traffic_is_quiet_and_changed_traffic_is_not() {
    let t = Thresholds::default();
    let steady = judge(&baselines(), &[slide(1, 400, 0.79, 0.3)], &t);
    assert_eq!(
        (steady.fit.state, steady.skew.state),
        (SignalState::Off, SignalState::Off)
    );
    assert!((steady.fit.live - 0.79).abs() < 1e-3 && (steady.skew.live - 1.2).abs() < 1e-9);
    assert_eq!(
        judge(&baselines(), &[slide(1, 400, 0.6, 0.3)], &t).fit.state,
        SignalState::On
    );
    assert_eq!(
        judge(&baselines(), &[slide(1, 400, 0.8, 0.9)], &t).skew.state,
        SignalState::On
    );
    assert_eq!(
        judge(&baselines(), &[slide(1, 199, 0.1, 1.0)], &t).fit.state,
        SignalState::InsufficientSamples
    );
}

#[test]
fn a_threshold_passed_by_chance_is_no_signal() {
    // 12 requests, 5 of them in one of 4 clusters: skew 1.67 > 1.3 x 1.2, well within what chance does.
    let t = Thresholds {
        min_requests: 10,
        max_cluster_skew: 1.3,
        ..Thresholds::default()
    };
    let skew = judge(&baselines(), &[slide(1, 12, 0.8, 0.42)], &t).skew;
    assert!(skew.live > skew.threshold && skew.state == SignalState::Off, "{skew:?}");
}

#[test]
fn skew_is_capped_for_few_clusters_and_absent_for_one() {
    let two = Baselines {
        skew: 1.0,
        ..baselines()
    };
    let mut s = SlideSummary::new(1, "table", 2);
    (0..400).for_each(|i| s.record_signed(usize::from(i % 20 == 0), 0.8));
    // With K = 2 skew cannot reach 2.0 x 1.0; the cap (K + 1) / 2 = 1.5 makes the signal possible.
    assert_eq!(judge(&two, &[s], &Thresholds::default()).skew.state, SignalState::On);
    let mut one = SlideSummary::new(1, "table", 1);
    (0..400).for_each(|_| one.record_signed(0, 0.8));
    let signals = judge(
        &Baselines {
            skew: 1.0,
            ..baselines()
        },
        &[one],
        &Thresholds::default(),
    );
    assert_eq!(
        (signals.skew.state, signals.fit.state),
        (SignalState::NotAvailable, SignalState::Off)
    );
    let none = judge(
        &Baselines::default(),
        &[slide(1, 400, 0.1, 1.0)],
        &Thresholds::default(),
    );
    assert_eq!(
        (none.fit.state, none.skew.state),
        (SignalState::NotAvailable, SignalState::NotAvailable)
    );
}

#[test]
fn routers_add_up_and_other_tables_do_not_mix_in() {
    let mut other_table = slide(1, 50, 0.1, 1.0);
    other_table.digest = "old".into();
    let all = [
        slide(2, 10, 0.8, 0.5),
        slide(1, 10, 0.8, 0.5),
        other_table.clone(),
        slide(1, 30, 0.6, 0.5),
    ];
    let merged = merge_slides(&all, "table").unwrap();
    assert_eq!(
        merged.iter().map(|s| (s.slide, s.signed)).collect::<Vec<_>>(),
        [(1, 40), (2, 10)]
    );
    assert!((merged[0].fit_sum - (8.0 + 18.0)).abs() < 1e-4);
    assert!(matches!(
        slide(1, 1, 0.5, 0.5).merge(&other_table),
        Err(SummaryError::Differs {
            what: "table digest",
            ..
        })
    ));
    assert!(matches!(
        slide(1, 1, 0.5, 0.5).merge(&slide(2, 1, 0.5, 0.5)),
        Err(SummaryError::Differs { what: "slide", .. })
    ));
    let mut bad = slide(1, 1, 0.5, 0.5);
    bad.fit_sum = f64::NAN;
    assert!(merge_slides(&[bad], "table").is_err());
}

#[test]
fn missing_signatures_are_counted_by_reason_within_bounds() {
    let mut s = SlideSummary::new(1, "table", 2);
    s.record_missing("NoExperts");
    s.record_missing("NoExperts");
    (0..100).for_each(|i| s.record_missing(&format!("reason {i}")));
    assert_eq!((s.requests, s.signed, s.missing["NoExperts"]), (102, 0, 2));
    assert!(s.missing.len() <= 33 && s.missing["Other"] == 69);
    s.validate().unwrap();
    let json = serde_json::to_string(&s).unwrap();
    assert_eq!(serde_json::from_str::<SlideSummary>(&json).unwrap(), s);
    assert!((judge(&baselines(), &[s], &Thresholds::default()).coverage().unwrap()).abs() < 1e-9);
}

#[test]
fn windows_lengthen_until_they_hold_enough() {
    let merged: Vec<SlideSummary> = [3u64, 5, 6, 9, 10, 11]
        .iter()
        .map(|i| slide(*i, 100, 0.8, 0.25))
        .collect();
    let slides = |w: &[SlideSummary]| w.iter().map(|s| s.slide).collect::<Vec<_>>();
    assert_eq!(slides(select_window(&merged, 11, 4, 96, 200)), [9, 10, 11]);
    assert_eq!(slides(select_window(&merged, 11, 4, 96, 400)), [6, 9, 10, 11]);
    assert_eq!(slides(select_window(&merged, 11, 4, 6, 4000)), [6, 9, 10, 11]);
    assert_eq!(slides(select_window(&merged, 10, 1, 96, 1)), [10]);
    assert_eq!(slides(select_window(&merged, 2, 4, 96, 1)), [0u64; 0]);
}

fn signals(fit: SignalState, skew: SignalState) -> Signals {
    let mut s = judge(&baselines(), &[], &Thresholds::default());
    s.fit.state = fit;
    s.skew.state = skew;
    s
}

#[test]
fn a_signal_must_last() {
    use SignalState::{InsufficientSamples, NotAvailable, Off, On};
    let mut state = DriftState::default();
    assert_eq!(
        state.advance("t", 10, &signals(InsufficientSamples, NotAvailable), 2),
        Verdict::InsufficientSamples
    );
    assert_eq!(state.advance("t", 11, &signals(Off, Off), 2), Verdict::Stable);
    assert_eq!(state.advance("t", 12, &signals(Off, On), 2), Verdict::Suspected);
    // The same slide asked again, as after a restart of the loop, is not a second slide.
    assert_eq!(state.advance("t", 12, &signals(Off, On), 2), Verdict::Suspected);
    // Another signal is not the same one lasting.
    assert_eq!(state.advance("t", 13, &signals(On, Off), 2), Verdict::Suspected);
    assert_eq!(state.advance("t", 14, &signals(On, Off), 2), Verdict::Drifted);
    assert_eq!(state.onset(), Some(13));
    // A gap is no evidence.
    assert_eq!(state.advance("t", 20, &signals(On, Off), 2), Verdict::Suspected);
    assert_eq!(state.advance("t", 21, &signals(On, Off), 2), Verdict::Drifted);
    // A new table starts afresh.
    assert_eq!(state.advance("u", 22, &signals(On, Off), 2), Verdict::Suspected);
    assert_eq!(state.advance("u", 23, &signals(Off, Off), 2), Verdict::Stable);
    let restored: DriftState = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
    assert_eq!(restored, state);
}
