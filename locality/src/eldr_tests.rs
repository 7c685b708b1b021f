use super::*;
use crate::counts::ActivationCounts;
use crate::policy::{Candidates, LocalityBand, Policy, Ties};
use crate::score::scores;

const FIT_F: &str = include_str!("../tests/data/eldr-fit-f.json");
const REFUSALS: &str = include_str!("../tests/data/eldr-refusals.json");

fn options() -> ImportOptions {
    ImportOptions {
        model: Some("toy".into()),
        top_k: 2,
        tau: 0.1,
    }
}

fn route(table: &CentroidTable, counts: [u32; 6], loads: &[f32], min_candidates: usize) -> usize {
    let counts = ActivationCounts::from_cells(&table.fingerprint.geometry, counts.to_vec(), 0).unwrap();
    let (mut signature, mut similarity) = (vec![0.0; 3], vec![0.0; 2]);
    table.transform.signature(&counts, &mut signature).unwrap();
    scores(table, &signature, &mut similarity).unwrap();
    let policy = LocalityBand {
        ties: Ties::LowestIndex,
        ..LocalityBand::new(table.tau, min_candidates, None).unwrap()
    };
    let candidates = Candidates {
        loads,
        similarity: Some(&similarity),
        ..Candidates::default()
    };
    policy
        .choose(&candidates, &mut rand::rngs::mock::StepRng::new(0, 1))
        .unwrap()
        .worker
}

/// From file to decision: the routing vectors of the artifact's fit F at tau 0.1.
#[test]
fn an_imported_file_routes_as_in_eldr() {
    let table = import(FIT_F.as_bytes(), &options()).unwrap();
    assert_eq!(route(&table, [7, 1, 0, 1, 3, 4], &[2.0, 1.0], 1), 1);
    assert_eq!(route(&table, [1, 1, 1, 1, 3, 4], &[3.0, 1.0], 1), 1);
    assert_eq!(route(&table, [1, 1, 1, 1, 3, 4], &[1.0, 1.0], 1), 0);
    assert_eq!(route(&table, [0; 6], &[3.0, 1.0], 1), 1);
    assert_eq!(route(&table, [1, 1, 1, 1, 3, 0], &[3.0, 0.0], 1), 0);
    assert_eq!(route(&table, [1, 1, 1, 1, 3, 0], &[3.0, 0.0], 2), 1);
}

#[test]
fn every_refusal_of_the_artifact_is_one_here() {
    let refusals: Vec<Value> = serde_json::from_str(REFUSALS).unwrap();
    for case in refusals {
        let mut file: Value = serde_json::from_str(FIT_F).unwrap();
        for (key, value) in case["change"].as_object().unwrap() {
            file[key] = value.clone();
        }
        let error = import(file.to_string().as_bytes(), &options())
            .expect_err(&case.to_string())
            .to_string();
        assert!(error.contains(case["says"].as_str().unwrap()), "{case}: {error}");
    }
    let nan = FIT_F.replace("[2.0,0.0,0.5]", "[NaN,1,1]");
    assert!(matches!(
        import(nan.as_bytes(), &options()),
        Err(EldrError::Malformed(_))
    ));
    let small = br#"{"L":1,"e":2,"k":3,"centroids":[[1,0],[0,1]]}"#;
    assert!(
        import(small, &options())
            .unwrap_err()
            .to_string()
            .contains("metadata k=3")
    );
}

#[test]
fn exports_read_back_the_same() {
    let table = import(FIT_F.as_bytes(), &options()).unwrap();
    assert_eq!(import(&export(&table).unwrap(), &options()).unwrap(), table);
    let gate = FIT_F
        .replace("count_idf", "gate_prob_all")
        .replace("<i2", "<f4")
        .replace("\"sig_idf\":[2.0,0.0,0.5],", "")
        .replace("centroids", "micro_centroids");
    let gate = import(gate.as_bytes(), &options()).unwrap();
    assert_eq!(import(&export(&gate).unwrap(), &options()).unwrap(), gate);
    let mut out = [0.0; 3];
    gate.transform
        .signature_of_values(&[0.1, 0.2, 0.7, 0.6, 0.0, 0.8], &mut out)
        .unwrap();
    assert!((out[0] - 0.6).abs() < 1e-6 && (out[2] - 0.8).abs() < 1e-6);
    let geometry = table.fingerprint.geometry;
    assert!(
        gate.transform
            .signature(&ActivationCounts::zeros(&geometry), &mut out)
            .is_err()
    );
    let mut root = table;
    root.transform = Transform::new(TransformKind::Sqrt, &geometry, vec![1], Vec::new()).unwrap();
    assert!(matches!(export(&root), Err(EldrError::NotExpressible(_))));
}
