use std::f32::consts::{FRAC_1_SQRT_2, LN_2};

use super::counts::ActivationCounts;
use super::geometry::Geometry;
use super::transform::{Transform, TransformError, TransformKind, fit_idf, idf_weight};

fn close(got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len());
    for (g, e) in got.iter().zip(expected) {
        assert!((g - e).abs() < 1e-6, "{got:?} is not {expected:?}");
    }
}

fn signature(transform: &Transform, counts: &[u32]) -> Vec<f32> {
    let counts = ActivationCounts::from_cells(transform.geometry(), counts.to_vec(), 0).unwrap();
    let mut out = vec![f32::NAN; transform.dim()];
    transform.signature(&counts, &mut out).unwrap();
    out
}

/// Fit F of the ELDR artifact: two layers of three experts, layer 1 kept.
fn fit_f() -> Transform {
    let geometry = Geometry::new(2, 3, 2).unwrap();
    Transform::new(TransformKind::CountIdf, &geometry, vec![1], vec![2.0, 0.0, 0.5]).unwrap()
}

#[test]
fn count_idf_matches_eldr() {
    close(
        &signature(&fit_f(), &[3, 5, 1, 1, 2, 8]),
        &[0.447_213_6, 0.0, 0.894_427_2],
    );
    close(&signature(&fit_f(), &[1, 1, 1, 0, 8, 0]), &[0.0, 0.0, 0.0]);
    close(
        &signature(&fit_f(), &[7, 1, 0, 1, 3, 4]),
        &[FRAC_1_SQRT_2, 0.0, FRAC_1_SQRT_2],
    );
}

#[test]
fn other_kinds_have_one_global_norm() {
    let geometry = Geometry::new(2, 2, 2).unwrap();
    let kind = |kind| Transform::all_layers(kind, &geometry).unwrap();
    close(
        &signature(&kind(TransformKind::Count), &[3, 0, 0, 4]),
        &[0.6, 0.0, 0.0, 0.8],
    );
    close(
        &signature(&kind(TransformKind::Sqrt), &[9, 0, 0, 16]),
        &[0.6, 0.0, 0.0, 0.8],
    );
    close(
        &signature(&kind(TransformKind::Binary), &[9, 0, 5, 0]),
        &[FRAC_1_SQRT_2, 0.0, FRAC_1_SQRT_2, 0.0],
    );
    close(&signature(&kind(TransformKind::Count), &[0; 4]), &[0.0; 4]);
    // Gate probabilities are taken as they are, and only as values.
    let gates = Transform::new(TransformKind::GateProbability, &geometry, vec![1], Vec::new()).unwrap();
    let mut out = [0.0; 2];
    assert_eq!(gates.signature_of_values(&[7.0, 7.0, 0.3, 0.4], &mut out).unwrap(), 0.5);
    close(&out, &[0.6, 0.8]);
    assert_eq!(
        gates.signature(&ActivationCounts::zeros(&geometry), &mut out),
        Err(TransformError::NotCounts)
    );
}

#[test]
fn values_and_counts_agree() {
    let counts = [7u32, 1, 0, 1, 3, 4];
    let mut out = [0.0; 3];
    let norm = fit_f()
        .signature_of_values(&counts.map(|c| c as f32), &mut out)
        .unwrap();
    assert!(norm > 0.0);
    close(&out, &signature(&fit_f(), &counts));
    assert_eq!(
        fit_f().signature_of_values(&[f32::NAN; 6], &mut out),
        Err(TransformError::Value)
    );
    assert!(matches!(
        fit_f().signature_of_values(&[0.0; 5], &mut out),
        Err(TransformError::Length { .. })
    ));
}

#[test]
fn refuses_bad_masks_weights_and_inputs() {
    let geometry = Geometry::new(2, 3, 2).unwrap();
    let make = |layers: Vec<u16>, idf: Vec<f32>| Transform::new(TransformKind::CountIdf, &geometry, layers, idf);
    for layers in [vec![], vec![1, 1], vec![2], vec![1, 0]] {
        let idf = vec![1.0; layers.len() * 3];
        assert!(matches!(make(layers, idf), Err(TransformError::Layers { layers: 2 })));
    }
    for idf in [
        vec![1.0; 2],
        vec![1.0, -1.0, 1.0],
        vec![0.0; 3],
        vec![f32::NAN, 1.0, 1.0],
    ] {
        assert!(matches!(make(vec![1], idf), Err(TransformError::Idf(_))));
    }
    assert!(Transform::new(TransformKind::Count, &geometry, vec![1], vec![1.0; 3]).is_err());
    let other = ActivationCounts::zeros(&Geometry::new(3, 3, 2).unwrap());
    assert!(matches!(
        fit_f().signature(&other, &mut [0.0; 3]),
        Err(TransformError::Geometry { .. })
    ));
    let own = ActivationCounts::zeros(&geometry);
    assert!(matches!(
        fit_f().signature(&own, &mut [0.0; 2]),
        Err(TransformError::Length { got: 2, expected: 3 })
    ));
}

#[test]
fn idf_matches_eldr() {
    for (n, df, expected) in [
        (3, &[3u32, 2, 1, 0][..], &[0.0, 0.287_682, LN_2, 1.386_294][..]),
        (
            1000,
            &[1000, 999, 500, 1, 0],
            &[0.0, 0.000_999_5, 0.692_147_9, 6.215_607_6, 6.908_755],
        ),
    ] {
        let got: Vec<f32> = df.iter().map(|df| idf_weight(n, *df)).collect();
        close(&got, expected);
    }
    let geometry = Geometry::new(1, 4, 1).unwrap();
    let request = |cells: [u32; 4]| ActivationCounts::from_cells(&geometry, cells.to_vec(), 9).unwrap();
    let requests = [request([1, 5, 2, 0]), request([1, 1, 0, 0]), request([4, 0, 0, 0])];
    close(
        &fit_idf(&geometry, &requests).unwrap(),
        &[0.0, 0.287_682, LN_2, 1.386_294],
    );
    assert!(fit_idf(&geometry, []).is_none());
}
