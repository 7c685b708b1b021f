use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::counts::ActivationCounts;
use crate::geometry::Geometry;
use crate::sample::Sample;
use crate::table::Fingerprint;

/// Requests of four kinds that differ in words and in the experts they use; decode follows prefill with some noise.
pub(crate) fn requests(n: usize, seed: u64) -> Vec<Sample> {
    const WORDS: [&str; 4] = [
        "der Hund und die Katze ",
        "fn main() -> u32 { ",
        "la vie est belle ",
        "привет мир ",
    ];
    let geometry = Geometry::new(3, 16, 2).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..n)
        .map(|i| {
            let kind = i % 4;
            let mut counter = NgramCounter::new();
            for _ in 0..rng.gen_range(5..20) {
                let word = WORDS[if rng.gen_bool(0.1) { rng.gen_range(0..4) } else { kind }];
                counter.push(&word.as_bytes()[..rng.gen_range(4..word.len())]);
            }
            let mut draw = |tokens: usize| {
                let mut rows = Vec::new();
                for _ in 0..tokens * 3 {
                    let first = if rng.gen_bool(0.3) {
                        rng.gen_range(0..16u8)
                    } else {
                        kind as u8 * 4 + rng.gen_range(0..4u8)
                    };
                    rows.extend([first, (first + rng.gen_range(1..3)) % 16]);
                }
                ActivationCounts::from_rows(&geometry, &rows, tokens).unwrap()
            };
            let mut sample = Sample::new(Fingerprint::new("toy", geometry));
            sample.prefill_counts = Some(draw(12));
            sample.decode_counts = Some(draw(60));
            sample.ngrams = counter.ngrams();
            sample
        })
        .collect()
}

fn learned(samples: &[Sample]) -> Learned {
    let references: Vec<&Sample> = samples.iter().collect();
    learn(&samples[0].fingerprint.geometry, &references, &LearnOptions::default()).unwrap()
}

fn predictions(predictors: &Predictors, samples: &[Sample]) -> Vec<f32> {
    let geometry = predictors.geometry();
    let mut scratch = Scratch::new(geometry);
    let mut out = vec![0.0; geometry.cells()];
    let mut all = Vec::new();
    for sample in samples {
        let text = NgramCounter::from_ngrams(&sample.ngrams);
        let prefill = sample.prefill_counts.as_ref();
        for evidence in [
            Evidence {
                text: Some(&text),
                prefill,
            },
            Evidence { text: None, prefill },
            Evidence {
                text: Some(&text),
                prefill: None,
            },
            Evidence::default(),
        ] {
            predictors.predict_into(evidence, &mut scratch, &mut out).unwrap();
            for layer in out.chunks_exact(16) {
                assert!((layer.iter().sum::<f32>() - 2.0).abs() < 1e-3 && layer.iter().all(|v| *v >= 0.0));
            }
            all.extend_from_slice(&out);
        }
    }
    all
}

#[test]
fn learned_maps_beat_the_mean_and_own_frequencies() {
    let samples = requests(200, 1);
    let found = learned(&samples);
    let report = &found.report;
    assert_eq!(
        (report.samples, report.text_samples, report.prefill_samples),
        (200, 200, 200)
    );
    let own = report.own_error.unwrap();
    assert!(report.text_error.unwrap() < 0.5 * report.mean_error, "{report:?}");
    assert!(
        report.prefill_error.unwrap() < own && report.mixed_error.unwrap() < own,
        "{report:?}"
    );
    // Held-out errors are those of requests that nothing has seen.
    let (mut error, mut cells) = (0.0f64, 0.0);
    let mut out = vec![0.0; 48];
    let mut truth = vec![0.0; 48];
    for sample in requests(200, 2) {
        let text = NgramCounter::from_ngrams(&sample.ngrams);
        let known = found.predictors.text_into(&text, &mut out).unwrap();
        assert!((0.0..=1.0).contains(&known));
        own_frequencies(sample.decode_counts.as_ref().unwrap(), &mut truth);
        error += out
            .iter()
            .zip(&truth)
            .map(|(a, b)| f64::from((a - b) * (a - b)))
            .sum::<f64>();
        cells += 48.0;
    }
    let ratio = error / cells / report.text_error.unwrap();
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
    let mut unseen = vec![0.0; 48];
    assert!(found.unseen_text_into(7, &mut unseen) && !found.unseen_text_into(999, &mut unseen));
}

#[test]
fn order_and_threads_change_nothing() {
    let mut samples = requests(90, 3);
    let one = learned(&samples).predictors;
    samples.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(9));
    let two = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap()
        .install(|| learned(&samples).predictors);
    assert_eq!(one, two);
    assert_eq!(predictions(&one, &samples[..20]), predictions(&two, &samples[..20]));
}

#[test]
fn learns_what_the_samples_allow() {
    let mut samples = requests(80, 4);
    for sample in &mut samples {
        sample.ngrams.clear();
    }
    let found = learned(&samples);
    assert!(found.predictors.text().is_none() && found.predictors.prefill().is_some());
    predictions(&found.predictors, &samples[..5]);
    let mut samples = requests(80, 4);
    for sample in &mut samples {
        sample.prefill_counts = None;
    }
    let found = learned(&samples);
    assert!(found.predictors.text().is_some() && found.predictors.prefill().is_none());
    predictions(&found.predictors, &requests(5, 1));
    let few = requests(10, 4);
    let found = learned(&few);
    assert!(found.predictors.text().is_none() && found.predictors.prefill().is_none());
    predictions(&found.predictors, &few);
    let mut none = requests(10, 4);
    for sample in &mut none {
        sample.decode_counts = None;
    }
    let references: Vec<&Sample> = none.iter().collect();
    assert!(learn(&none[0].fingerprint.geometry, &references, &LearnOptions::default()).is_none());
}

/// One kind of traffic that calibration never saw: the maps alone are worse than prefill counts, the mixture is not.
#[test]
fn unseen_traffic_falls_back_to_what_is_safer() {
    let all = requests(400, 5);
    let seen: Vec<Sample> = all
        .iter()
        .enumerate()
        .filter(|(i, _)| i % 4 != 3)
        .map(|(_, s)| s.clone())
        .collect();
    let predictors = learned(&seen).predictors;
    let mut scratch = Scratch::new(predictors.geometry());
    let (mut out, mut truth, mut own) = (vec![0.0; 48], vec![0.0; 48], vec![0.0; 48]);
    let squared = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from((x - y) * (x - y))).sum::<f64>();
    let (mut text_error, mut own_error, mut mixed_error) = (0.0, 0.0, 0.0);
    let mut learned_share = [0.0; 2];
    for (i, sample) in all.iter().enumerate() {
        let text = NgramCounter::from_ngrams(&sample.ngrams);
        let evidence = Evidence {
            text: Some(&text),
            prefill: sample.prefill_counts.as_ref(),
        };
        let confidence = predictors.predict_into(evidence, &mut scratch, &mut out).unwrap();
        learned_share[usize::from(i % 4 == 3)] += confidence.learned;
        if i % 4 == 3 {
            own_frequencies(sample.decode_counts.as_ref().unwrap(), &mut truth);
            own_frequencies(sample.prefill_counts.as_ref().unwrap(), &mut own);
            mixed_error += squared(&out, &truth);
            own_error += squared(&own, &truth);
            predictors.text_into(&text, &mut out).unwrap();
            text_error += squared(&out, &truth);
        }
    }
    assert!(text_error > 1.5 * own_error, "{text_error} {own_error}");
    assert!(mixed_error < 1.05 * own_error, "{mixed_error} {own_error}");
    assert!(
        learned_share[1] / 100.0 < 0.5 * learned_share[0] / 300.0,
        "{learned_share:?}"
    );
}

#[test]
fn refuses_other_geometries() {
    let samples = requests(60, 6);
    let predictors = learned(&samples).predictors;
    let other = Geometry::new(3, 8, 2).unwrap();
    let mut out = vec![0.0; 48];
    let counts = ActivationCounts::from_rows(&other, &[1u8; 6], 1).unwrap();
    let evidence = Evidence {
        text: None,
        prefill: Some(&counts),
    };
    assert!(
        predictors
            .predict_into(evidence, &mut Scratch::new(predictors.geometry()), &mut out)
            .is_err()
    );
    assert!(
        predictors
            .predict_into(Evidence::default(), &mut Scratch::new(&other), &mut out)
            .is_err()
    );
    assert!(
        predictors
            .predict_into(
                Evidence::default(),
                &mut Scratch::new(predictors.geometry()),
                &mut out[1..]
            )
            .is_err()
    );
}

#[test]
fn curves_are_straight_between_knots_and_level_outside() {
    let curve = Curve::new(vec![0.0, 2.0], vec![[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]).unwrap();
    assert_eq!(curve.at(-9.0).text, 1.0);
    assert_eq!(curve.at(9.0).own, 1.0);
    assert_eq!((curve.at(0.5).text, curve.at(0.5).own), (0.75, 0.25));
    assert!(Curve::new(vec![1.0, 1.0], vec![[0.25; 4]; 2]).is_none());
    assert!(Curve::new(vec![1.0], vec![[0.5; 4]]).is_none());
}

#[test]
fn halves_are_read_as_the_library_reads_them() {
    for bits in 0..=u16::MAX {
        let Some(kept) = half_rows::checked(bits) else {
            assert!(!half::f16::from_bits(bits).is_finite());
            continue;
        };
        assert_eq!(
            half_rows::small_value(kept) * half_rows::REBIAS,
            half::f16::from_bits(kept).to_f32()
        );
    }
    assert_eq!(
        half_rows::small_value(half_rows::to_bits(1e9)) * half_rows::REBIAS,
        65504.0
    );
    assert_eq!(half_rows::to_bits(1e-6), 0);
}

proptest! {
    #![proptest_config(crate::property::config())]

    #[test]
    fn how_text_is_cut_changes_nothing(text in proptest::collection::vec(any::<u8>(), 0..300), cuts in proptest::collection::vec(0usize..300, 0..12)) {
        let mut whole = NgramCounter::new();
        whole.push(&text);
        let mut pieces = NgramCounter::new();
        pieces.push(b"what was counted before");
        pieces.clear();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
        cuts.sort_unstable();
        cuts.push(text.len());
        let mut from = 0;
        for to in cuts {
            pieces.push(&text[from..to]);
            from = to;
        }
        let ngrams = whole.ngrams();
        prop_assert_eq!(&pieces.ngrams(), &ngrams);
        prop_assert_eq!(NgramCounter::from_ngrams(&ngrams).ngrams(), ngrams.clone());
        prop_assert!(ngrams.windows(2).all(|w| w[0].0 < w[1].0) && ngrams.iter().all(|(b, c)| *b < NGRAM_BUCKETS && *c > 0));
        let expected: usize = (1..=4).map(|n| (text.len() + 1).saturating_sub(n)).sum();
        prop_assert_eq!(ngrams.iter().map(|(_, c)| *c as usize).sum::<usize>(), expected);
    }
}

#[test]
fn counts_stop_instead_of_wrapping() {
    let mut counter = NgramCounter::new();
    counter.push(&vec![b'a'; 200_000]);
    assert_eq!(counter.ngrams().iter().map(|(_, c)| *c).collect::<Vec<_>>(), [65535; 4]);
}
