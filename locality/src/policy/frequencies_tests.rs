use super::*;
use crate::counts::ActivationCounts;
use crate::geometry::Geometry;

#[test]
fn takes_what_a_predictor_says_and_refuses_what_is_no_frequency() {
    let geometry = Geometry::new(1, 4, 2).unwrap();
    let kept = Frequencies::new(&geometry, &[0.0, 1.0, -0.01, 0.3]).unwrap();
    let values: Vec<f32> = kept.values().collect();
    assert_eq!(values[..3], [0.0, 1.0, 0.0]);
    assert!((values[3] - 0.3).abs() < 1e-4);
    for bad in [f32::NAN, f32::INFINITY, -0.2, 1.2] {
        let refused = Frequencies::new(&geometry, &[0.0, bad, 0.0, 0.0]).unwrap_err();
        assert_eq!(refused, FrequenciesError::Value { index: 1 });
    }
    assert!(matches!(
        Frequencies::new(&geometry, &[0.0]),
        Err(FrequenciesError::Length { got: 1, expected: 4 })
    ));
}

#[test]
fn counts_become_counts_per_token() {
    let geometry = Geometry::new(1, 4, 2).unwrap();
    let counts = ActivationCounts::from_cells(&geometry, vec![8, 4, 4, 0], 8).unwrap();
    let values: Vec<f32> = Frequencies::from_counts(&counts).unwrap().values().collect();
    assert_eq!(values, [1.0, 0.5, 0.5, 0.0]);
    let none = ActivationCounts::zeros(&geometry);
    assert_eq!(Frequencies::from_counts(&none), Err(FrequenciesError::NoTokens));
    // More choices than tokens: an engine's duplicates.
    let odd = ActivationCounts::from_cells(&geometry, vec![9, 4, 3, 0], 8).unwrap();
    assert_eq!(Frequencies::from_counts(&odd).unwrap().values().next(), Some(1.0));
}
