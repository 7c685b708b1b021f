//! The objects that carry a table.

use std::time::Duration;

use coterie_calibrator::{
    publish::{Owner, Published, chunk_objects, table_object},
    report,
};
use coterie_locality::{ActivationCounts, CentroidTable, Fingerprint, Geometry, Sample, fit, table};

fn fitted() -> CentroidTable {
    let fingerprint = Fingerprint::new("m", Geometry::new(2, 8, 2).unwrap());
    let samples: Vec<Sample> = (0..40_usize)
        .map(|request| {
            let mut cells = vec![0; 16];
            let hot = (request % 4) * 2;
            for layer in 0..2 {
                cells[layer * 8 + hot] = 10;
                cells[layer * 8 + hot + 1] = 10;
            }
            let counts = ActivationCounts::from_cells(&fingerprint.geometry, cells, 10).unwrap();
            Sample {
                prefill_counts: Some(counts),
                prompt_tokens: 10,
                ..Sample::new(fingerprint.clone())
            }
        })
        .collect();
    fit::fit(
        &samples,
        &fit::FitOptions {
            clusters: 4,
            ..fit::FitOptions::default()
        },
        None,
    )
    .unwrap()
    .0
}

#[test]
fn a_large_payload_is_cut_into_immutable_chunks_that_join_to_the_digest() {
    let table = fitted();
    let payload: Vec<u8> = (0..2_000_000_u32).map(|byte| byte as u8).collect();
    let owner = Owner {
        namespace: "ns".into(),
        deployment: "fleet".into(),
        uid: "u".into(),
        run: "fleet-initial".into(),
    };
    let report = report::run_report(&table, Duration::from_secs(3), Duration::from_millis(250));
    let published = Published {
        table: &table,
        payload: &payload,
        report,
    };
    let object = table_object("fleet-initial", &owner, &published);

    assert_eq!(
        object.spec.chunks,
        ["fleet-initial-0", "fleet-initial-1", "fleet-initial-2"]
    );
    assert_eq!((object.spec.clusters, object.spec.payload_bytes), (4, 2_000_000));
    assert!(object.status.is_none(), "only the operator gives a table a phase");
    let owners = object.metadata.owner_references.clone().unwrap();
    assert_eq!(
        (owners[0].kind.as_str(), owners[0].uid.as_str()),
        ("MoEDeployment", "u")
    );
    assert!(object.spec.report.rho.is_none(), "no decode counts, no rho");

    let mut created = object;
    created.metadata.uid = Some("t".to_owned());
    let chunks = chunk_objects(&created, &owner, &payload);
    let parts: Vec<Vec<u8>> = chunks
        .iter()
        .map(|chunk| chunk.binary_data.as_ref().unwrap()["chunk"].0.clone())
        .collect();
    assert!(parts.iter().all(|part| part.len() <= 900 * 1024));
    assert_eq!(table::join(&parts, &created.spec.digest).unwrap(), payload);
    assert!(chunks.iter().all(|chunk| chunk.immutable == Some(true)));
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk.metadata.owner_references.as_ref().unwrap()[0].uid == "t")
    );
}
