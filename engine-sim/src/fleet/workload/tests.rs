use std::collections::HashMap;
use std::sync::Arc;

use coterie_locality::{ActivationCounts, Geometry};

use super::{Arrival, Mix, OutputLengths, Process, Sessions, Workload, replay};
use crate::fleet::gates::{Choices, Recording, RequestGates};

/// Domains a, b, c in turn, each third one of c blended with a.
fn recording() -> Recording {
    let geometry = Geometry::new(1, 2, 1).unwrap();
    let request = |i: usize| {
        let domains = if i % 9 == 8 { vec![0, 2] } else { vec![(i % 3) as u16] };
        Arc::new(RequestGates {
            prompt_tokens: 10 + i as u32,
            prefill: ActivationCounts::zeros(&geometry),
            decode: Choices::new(geometry, &[0, 1, 0]).unwrap(),
            domains,
            ngrams: Vec::new(),
            text: None,
        })
    };
    Recording {
        geometry,
        domain_names: ["a", "b", "c"].map(str::to_owned).to_vec(),
        requests: (0..90).map(request).collect(),
    }
}

fn with(process: Process, rate: f64, duration_s: f64) -> Vec<Arrival> {
    let workload = Workload {
        process,
        ..Workload::poisson(rate, duration_s, 5)
    };
    workload.arrivals(&recording(), 7).unwrap()
}

/// Mean and coefficient of variation of the gaps.
fn gaps(arrivals: &[Arrival]) -> (f64, f64) {
    let gaps: Vec<f64> = arrivals.windows(2).map(|w| w[1].time_s - w[0].time_s).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    (mean, variance.sqrt() / mean)
}

#[test]
fn processes_have_their_rate_and_burstiness() {
    for (process, variation) in [
        (Process::Poisson, 1.0),
        (Process::Gamma { shape: 0.25 }, 2.0),
        (Process::Gamma { shape: 4.0 }, 0.5),
    ] {
        let arrivals = with(process.clone(), 50.0, 1000.0);
        let (mean, found) = gaps(&arrivals);
        assert!((mean * 50.0 - 1.0).abs() < 0.03, "{process:?}: {mean}");
        assert!((found / variation - 1.0).abs() < 0.05, "{process:?}: {found}");
    }
    let bursts = with(
        Process::Bursts {
            factor: 10.0,
            burst_s: 1.0,
            calm_s: 4.0,
        },
        50.0,
        4000.0,
    );
    assert!((bursts.len() as f64 / 200_000.0 - 1.0).abs() < 0.05, "{}", bursts.len());
    assert!(gaps(&bursts).1 > 1.3);
    let day = with(
        Process::DayNight {
            period_s: 100.0,
            swing: 0.8,
        },
        50.0,
        1000.0,
    );
    let (light, dark) = day.iter().partition::<Vec<&Arrival>, _>(|a| a.time_s % 100.0 < 50.0);
    // Integrals of 1 +- 0.8 sin over half a period: 1 +- 0.8 x 2 / pi.
    let expected = (1.0 + 1.6 / std::f64::consts::PI) / (1.0 - 1.6 / std::f64::consts::PI);
    let found = light.len() as f64 / dark.len() as f64;
    assert!((found / expected - 1.0).abs() < 0.05, "{found} {expected}");
}

#[test]
fn arrivals_are_paired_and_repeatable() {
    let short = Workload::poisson(20.0, 100.0, 5);
    let long = Workload {
        output: OutputLengths::LogNormal {
            median: 100.0,
            sigma: 1.0,
            max: 4000,
        },
        ..short.clone()
    };
    let (a, b) = (
        short.arrivals(&recording(), 3).unwrap(),
        long.arrivals(&recording(), 3).unwrap(),
    );
    assert_eq!(a, short.arrivals(&recording(), 3).unwrap());
    assert_ne!(a, short.arrivals(&recording(), 4).unwrap());
    assert!(
        a.iter()
            .zip(&b)
            .all(|(a, b)| (a.time_s, a.request) == (b.time_s, b.request))
    );
    assert_eq!(a.len(), b.len());
    let mut first: Vec<usize> = a[..90].iter().map(|a| a.request).collect();
    first.sort_unstable();
    assert_eq!(
        first,
        (0..90).collect::<Vec<_>>(),
        "no request twice before all came once"
    );
}

#[test]
fn heavy_tailed_lengths_have_their_median_and_mean() {
    let workload = Workload {
        output: OutputLengths::LogNormal {
            median: 200.0,
            sigma: 1.0,
            max: 100_000,
        },
        ..Workload::poisson(100.0, 500.0, 1)
    };
    let mut lengths: Vec<u32> = workload
        .arrivals(&recording(), 1)
        .unwrap()
        .iter()
        .map(|a| a.output_tokens)
        .collect();
    lengths.sort_unstable();
    let mean = lengths.iter().map(|l| f64::from(*l)).sum::<f64>() / lengths.len() as f64;
    assert!((f64::from(lengths[lengths.len() / 2]) / 200.0 - 1.0).abs() < 0.03);
    assert!((mean / 329.7 - 1.0).abs() < 0.03, "{mean}");
}

#[test]
fn turns_carry_the_conversation_as_their_prefix() {
    let workload = Workload {
        sessions: Sessions {
            turns: 4.0,
            think_s: 1.0,
            answer_s_per_token: 0.01,
        },
        ..Workload::poisson(50.0, 2000.0, 6)
    };
    let recording = recording();
    let arrivals = workload.arrivals(&recording, 5).unwrap();
    assert!(
        (arrivals.len() as f64 / 100_000.0 - 1.0).abs() < 0.03,
        "{}",
        arrivals.len()
    );
    assert!(arrivals.windows(2).all(|w| w[0].time_s <= w[1].time_s));
    let mut last: HashMap<u64, Arrival> = HashMap::new();
    let mut follow_ups = 0;
    for a in arrivals {
        if let Some(before) = last.insert(a.session, a) {
            follow_ups += 1;
            assert_eq!(a.shared_prefix_tokens, before.prompt_tokens + before.output_tokens);
            let (now, then) = (&recording.requests[a.request], &recording.requests[before.request]);
            assert_eq!(now.domains, then.domains);
        } else {
            assert_eq!(a.shared_prefix_tokens, 0);
        }
        assert_eq!(
            a.prompt_tokens - a.shared_prefix_tokens,
            recording.requests[a.request].prompt_tokens
        );
    }
    assert!(follow_ups > 70_000);
}

#[test]
fn mixes_drift_appear_vanish_and_blend() {
    let recording = recording();
    let shares = |mix: Mix, from: f64, to: f64| {
        let workload = Workload {
            mix,
            ..Workload::poisson(200.0, 100.0, 5)
        };
        let arrivals = workload.arrivals(&recording, 11).unwrap();
        let within: Vec<String> = arrivals
            .iter()
            .filter(|a| (from..to).contains(&a.time_s))
            .map(|a| recording.domain(a.request))
            .collect();
        move |name: &str| within.iter().filter(|d| *d == name).count() as f64 / within.len() as f64
    };
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 0.03, "{found} {expected}");
    let drift = || Mix::drift(&["a", "b"], &["c"], 20.0, 80.0);
    near(shares(drift(), 0.0, 20.0)("c"), 0.0);
    near(shares(drift(), 45.0, 55.0)("c"), 0.5);
    near(shares(drift(), 80.0, 100.0)("c"), 1.0);
    let appear = || Mix::appear(&["a", "b"], "c", 0.4, 50.0);
    near(shares(appear(), 0.0, 50.0)("c"), 0.0);
    near(shares(appear(), 50.0, 100.0)("c"), 0.4);
    near(shares(Mix::vanish(&["a", "b"], "b", 50.0), 50.0, 100.0)("b"), 0.0);
    let blended = Mix::fixed([("a", 1.0)]).with_blended(0.3);
    near(shares(blended, 0.0, 100.0)("a+c"), 0.3);
    let unknown = Workload {
        mix: Mix::fixed([("x", 1.0)]),
        ..Workload::poisson(1.0, 1.0, 1)
    };
    assert!(
        unknown
            .arrivals(&recording, 0)
            .unwrap_err()
            .to_string()
            .contains("it has: a, b, c")
    );
    let none = Workload {
        mix: Mix::fixed([("b", 1.0)]).with_blended(1.0),
        ..Workload::poisson(9.0, 9.0, 1)
    };
    assert!(none.arrivals(&recording, 0).is_err());
}

#[test]
fn a_trace_is_replayed_with_what_it_says() {
    let trace = "domain,time_s,output_tokens,prompt_tokens\nb,100,7,300\n\na,102,,\nc,101,9,1\n";
    let recording = recording();
    let arrivals = replay(trace, &recording, 2.0, 1).unwrap();
    let seen: Vec<_> = arrivals
        .iter()
        .map(|a| (a.time_s, recording.domain(a.request), a.output_tokens))
        .collect();
    assert_eq!(
        seen,
        [
            (0.0, "b".to_owned(), 7),
            (0.5, "c".to_owned(), 9),
            (1.0, "a".to_owned(), 3)
        ]
    );
    assert_eq!(arrivals[0].prompt_tokens, 300);
    for bad in [
        "",
        "t\n1",
        "time_s\nx",
        "time_s,domain\n1,zz",
        "time_s,output_tokens\n1,-3",
    ] {
        assert!(replay(bad, &recording, 1.0, 1).is_err(), "{bad}");
    }
}

#[test]
fn impossible_workloads_are_refused() {
    let recording = recording();
    for workload in [
        Workload::poisson(0.0, 1.0, 1),
        Workload::poisson(1.0, f64::NAN, 1),
        Workload::poisson(1e9, 1e9, 1),
        Workload::poisson(1.0, 1.0, 0),
        Workload {
            process: Process::Gamma { shape: 0.0 },
            ..Workload::poisson(1.0, 1.0, 1)
        },
    ] {
        assert!(workload.arrivals(&recording, 0).is_err());
    }
}
