use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::counts::ActivationCounts;
use crate::drift::{SignalState, SlideSummary, Thresholds, judge};
use crate::geometry::Geometry;
use crate::kmeans::Balance;
use crate::score::{nearest, scores};
use crate::table::{Fingerprint, Precision, digest};
use crate::transform::TransformKind;

/// Requests of `domains` kinds, each preferring its own third of the experts in every layer but the last, which is noise.
fn samples(n: usize, domains: usize, decode: bool, seed: u64) -> Vec<Sample> {
    let geometry = Geometry::new(4, 24, 2).unwrap();
    let fingerprint = Fingerprint::new("toy", geometry);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..n)
        .map(|i| {
            let domain = i % domains;
            let mut draw = |tokens: usize| {
                let mut rows = Vec::new();
                for _ in 0..tokens {
                    for layer in 0..4 {
                        let first = if layer == 3 || rng.gen_bool(0.2) {
                            rng.gen_range(0..24u8)
                        } else {
                            (domain * 24 / domains) as u8 + rng.gen_range(0..(24 / domains) as u8)
                        };
                        rows.extend([first, (first + rng.gen_range(1..4)) % 24]);
                    }
                }
                ActivationCounts::from_rows(&geometry, &rows, tokens).unwrap()
            };
            let mut sample = Sample::new(fingerprint.clone());
            sample.prefill_counts = Some(draw(30));
            sample.decode_counts = decode.then(|| draw(40));
            sample
        })
        .collect()
}

fn options(clusters: usize) -> FitOptions {
    FitOptions {
        clusters,
        pairs: 4000,
        resamples: 50,
        batch: 16,
        ..FitOptions::default()
    }
}

#[test]
fn finds_the_domains_and_predicts_a_gain() {
    let samples = samples(400, 4, true, 1);
    let (table, report) = fit(&samples, &options(4), None).unwrap();
    assert_eq!((report.samples, report.decode_samples, report.clusters), (400, 400, 4));
    assert!(report.rho.unwrap() > 0.6, "{report:?}");
    assert!(
        !report.layers.contains(&3),
        "the noise layer was kept: {:?}",
        report.layers
    );
    assert!(report.predicted_gain.unwrap() > 0.1, "{report:?}");
    let interval = report.rho_interval.unwrap();
    assert!(interval[0] < report.rho.unwrap() && report.rho.unwrap() < interval[1]);
    // Requests of one domain share a cluster, different domains do not.
    let mut signature = vec![0.0; table.transform.dim()];
    let mut out = vec![0.0; 4];
    let mut cluster_of = |sample: &Sample| {
        table
            .transform
            .signature(sample.prefill_counts.as_ref().unwrap(), &mut signature)
            .unwrap();
        scores(&table, &signature, &mut out).unwrap();
        nearest(&out).unwrap().cluster
    };
    let of: Vec<usize> = samples.iter().take(4).map(&mut cluster_of).collect();
    assert!((0..4).all(|c| of.contains(&c)), "{of:?}");
    let agreeing = samples
        .iter()
        .enumerate()
        .filter(|(i, s)| cluster_of(s) == of[i % 4])
        .count();
    assert!(agreeing > 390, "{agreeing} of 400");
}

#[test]
fn is_deterministic_and_survives_encoding() {
    let samples = samples(120, 3, true, 2);
    let (a, _) = fit(&samples, &options(3), None).unwrap();
    let (b, _) = fit(&samples, &options(3), None).unwrap();
    let bytes = a.encode(Precision::F32).unwrap();
    assert_eq!(digest(&bytes), digest(&b.encode(Precision::F32).unwrap()));
    assert_eq!(CentroidTable::decode(&bytes).unwrap(), a);
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(single.install(|| fit(&samples, &options(3), None).unwrap().0), a);
}

#[test]
fn without_decode_counts_there_is_a_table_but_no_rho() {
    let (table, report) = fit(&samples(100, 2, false, 3), &options(2), None).unwrap();
    assert_eq!(
        (report.rho, report.predicted_gain, report.decode_samples),
        (None, None, 0)
    );
    assert_eq!(table.transform.kept_layers(), [0, 1, 2, 3]);
    assert!(table.baselines.fit_mean > 0.0 && table.baselines.requests == 25);
}

#[test]
fn a_refit_keeps_cluster_numbers() {
    let all = FitOptions {
        layer_selection: LayerChoice::All,
        ..options(3)
    };
    let (old, _) = fit(&samples(150, 3, false, 4), &all, None).unwrap();
    let (new, _) = fit(&samples(150, 3, false, 5), &FitOptions { seed: 77, ..all }, Some(&old)).unwrap();
    let dim = old.transform.dim();
    for (row, centroid) in new.centroids.chunks_exact(dim).enumerate() {
        let similarity: Vec<f32> = old
            .centroids
            .chunks_exact(dim)
            .map(|o| crate::score::dot(o, centroid))
            .collect();
        assert_eq!(nearest(&similarity).unwrap().cluster, row, "{similarity:?}");
    }
}

#[test]
fn baselines_hold_for_the_same_traffic_and_not_for_other() {
    let all = FitOptions {
        layer_selection: LayerChoice::All,
        ..options(4)
    };
    let (table, _) = fit(&samples(600, 4, false, 6), &all, None).unwrap();
    let judged = |requests: &[Sample]| {
        let mut slide = SlideSummary::new(1, "d", 4);
        let (mut signature, mut out) = (vec![0.0; table.transform.dim()], vec![0.0; 4]);
        for request in requests {
            table
                .transform
                .signature(request.prefill_counts.as_ref().unwrap(), &mut signature)
                .unwrap();
            scores(&table, &signature, &mut out).unwrap();
            let best = nearest(&out).unwrap();
            slide.record_signed(best.cluster, best.similarity);
        }
        judge(&table.baselines, &[slide], &Thresholds::default())
    };
    let steady = judged(&samples(300, 4, false, 7));
    assert_eq!(
        (steady.fit.state, steady.skew.state),
        (SignalState::Off, SignalState::Off),
        "{steady:?}"
    );
    let one_domain: Vec<Sample> = samples(1200, 4, false, 8).into_iter().step_by(4).collect();
    assert_eq!(judged(&one_domain).skew.state, SignalState::On);
    let foreign = judged(&samples(300, 1, false, 9));
    assert_eq!(foreign.fit.state, SignalState::On, "{foreign:?}");
}

#[test]
fn samples_routed_by_text_count_once_they_are_replayed() {
    let mut replayed = samples(200, 4, true, 5);
    let (expected, _) = fit(&replayed, &options(4), None).unwrap();
    for sample in replayed.iter_mut().step_by(2) {
        sample.source = crate::sample::Source::Text;
    }
    let (table, report) = fit(&replayed, &options(4), None).unwrap();
    assert_eq!((report.samples, table.centroids), (200, expected.centroids));
}

/// A sample with these prefill counts.
fn counted(geometry: &Geometry, cells: Vec<u32>, tokens: u64) -> Sample {
    let mut sample = Sample::new(Fingerprint::new("toy", *geometry));
    sample.prefill_counts = Some(ActivationCounts::from_cells(geometry, cells, tokens).unwrap());
    sample
}

#[test]
fn counts_stand_in_where_weights_leave_nothing() {
    // Everybody uses every expert of a domain; the only weight above 0 is that of an expert nobody uses.
    let geometry = Geometry::new(2, 5, 2).unwrap();
    let with = |i: u32| {
        let cells = [10 + i % 7, 20 - i % 7, 12, 18, 0].repeat(2);
        counted(&geometry, cells, 30)
    };
    let everyone: Vec<Sample> = (0..60).map(with).collect();
    let (table, _) = fit(&everyone, &options(4), None).unwrap();
    assert_eq!(table.transform.kind(), TransformKind::Count);
    // Requests that are all the same leave one weight or another at 0 too.
    let same = vec![with(0); 50];
    for clusters in [1, 2, 4] {
        assert_eq!(fit(&same, &options(clusters), None).unwrap().0.clusters(), clusters);
    }
}

#[test]
fn requests_without_a_signature_make_no_centroid() {
    // A tenth of the requests use only the two experts that everyone uses.
    let geometry = Geometry::new(1, 6, 2).unwrap();
    let with = |i: u32| {
        let mut cells = vec![30, 30, 0, 0, 0, 0];
        if !i.is_multiple_of(10) {
            cells[2 + (i % 4) as usize] = 20;
        }
        counted(&geometry, cells, 60)
    };
    let all: Vec<Sample> = (0..200).map(with).collect();
    let (table, _) = fit(&all, &options(4), None).unwrap();
    assert_eq!(table.transform.kind(), TransformKind::CountIdf);
    table.validate().unwrap();
}

#[test]
fn says_why_it_refuses() {
    let few = samples(5, 1, false, 1);
    let error = fit(&few, &options(8), None).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("5 of 5 samples have prefill counts (not all 0)"),
        "{error}"
    );
    let mut mixed = samples(50, 1, false, 1);
    mixed[7].fingerprint.model = "other".into();
    assert!(matches!(fit(&mixed, &options(2), None), Err(FitError::MixedModels(..))));
    for bad in [
        FitOptions {
            clusters: 0,
            ..options(1)
        },
        FitOptions {
            held_out: 0.9,
            ..options(1)
        },
        FitOptions {
            tau: Tau::Fixed(f32::NAN),
            ..options(1)
        },
        FitOptions {
            tau: Tau::Quantile(1.5),
            ..options(1)
        },
    ] {
        assert!(matches!(fit(&few, &bad, None), Err(FitError::Options(_))));
    }
}

#[test]
fn weights_shift_the_shares() {
    let mut weighted = samples(200, 2, false, 10);
    weighted.iter_mut().step_by(2).for_each(|s| s.weight = 3.0);
    let plain = FitOptions {
        balance: Balance::None,
        layer_selection: LayerChoice::All,
        ..options(2)
    };
    let (table, _) = fit(&weighted, &plain, None).unwrap();
    let mut shares = table.baselines.cluster_shares.clone();
    shares.sort_unstable_by(f64::total_cmp);
    assert!((shares[1] - 0.75).abs() < 0.1, "{shares:?}");
    assert!(table.baselines.requests < 50);
}

/// Samples with text: predictors of another test's requests, whose words tell their kind.
#[test]
fn learns_predictors_and_fits_source_text_on_unseen_predictions() {
    use crate::sample::Source;
    let requests = crate::predictor::test_requests(160, 11);
    let (table, report) = fit(&requests, &options(4), None).unwrap();
    let predictors = report.predictors.unwrap();
    assert_eq!(
        (table.version, predictors.samples, report.predictors_kept),
        (2, 160, false)
    );
    assert!(predictors.text_error.unwrap() < predictors.mean_error);
    let text = table.source(Source::Text).unwrap();
    assert_eq!((text.clusters(), report.text.unwrap().samples), (4, 160));
    assert!(report.text.unwrap().rho.unwrap() > 0.3, "{report:?}");
    assert!(text.tau < 0.7, "a band of everything: {}", text.tau);
    let bytes = table.encode(Precision::F32).unwrap();
    assert_eq!(CentroidTable::decode(&bytes).unwrap(), table);
    let half = table.encode(Precision::F16).unwrap();
    assert_eq!(CentroidTable::decode(&half).unwrap().predictors, table.predictors);
    for cut in [bytes.len() / 2, bytes.len() - 1] {
        assert!(CentroidTable::decode(&bytes[..cut]).is_err());
    }
    // Without decode counts the predictors in use stay, and text is fitted by them.
    let mut later = crate::predictor::test_requests(60, 12);
    for sample in &mut later {
        sample.decode_counts = None;
    }
    let (kept, report) = fit(&later, &options(4), Some(&table)).unwrap();
    assert!(report.predictors_kept && report.predictors.is_none() && kept.text.is_some());
    assert_eq!(kept.predictors, table.predictors);
    let without = FitOptions {
        predictors: None,
        ..options(4)
    };
    let (plain, _) = fit(&requests, &without, None).unwrap();
    assert_eq!((plain.version, plain.predictors, plain.text), (1, None, None));
}

#[test]
fn a_table_of_other_layers_gives_its_numbers_too() {
    let samples = samples(400, 4, true, 1);
    let all = FitOptions {
        layer_selection: LayerChoice::All,
        seed: 7,
        ..options(4)
    };
    let (old, _) = fit(&samples, &all, None).unwrap();
    let (new, _) = fit(&samples, &options(4), Some(&old)).unwrap();
    assert_ne!(old.transform.kept_layers(), new.transform.kept_layers());
    let cluster = |table: &CentroidTable, sample: &Sample| {
        let mut signature = vec![0.0; table.transform.dim()];
        let mut out = vec![0.0; 4];
        let counts = sample.prefill_counts.as_ref().unwrap();
        table.transform.signature(counts, &mut signature).unwrap();
        scores(table, &signature, &mut out).unwrap();
        nearest(&out).unwrap().cluster
    };
    let kept = samples.iter().filter(|s| cluster(&old, s) == cluster(&new, s)).count();
    assert!(kept > 380, "{kept} of 400");
}
