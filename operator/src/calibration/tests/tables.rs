use coterie_crds::v1alpha1::{
    CentroidTable,
    TablePhase::{Active, Candidate, Rejected, Superseded},
};
use coterie_locality::{
    CentroidTable as Payload, Fingerprint, Geometry, Transform,
    table::{Precision, digest},
    transform::TransformKind,
};

use crate::{
    calibration::{
        collect::old_tables,
        promotion::{Promotion, decide},
        verify::check,
    },
    testing::{example, table},
};

fn promotion(tables: &[CentroidTable], current: Option<&str>) -> Promotion {
    decide(tables, current, &example("tiny-moe").spec.model)
}

#[test]
fn a_verified_candidate_takes_the_place_of_the_active_table() {
    let tables = [table("a", 1, Some(Active)), table("b", 2, Some(Candidate))];
    let promotion = promotion(&tables, Some("a"));
    assert_eq!(promotion.active.as_deref(), Some("b"));
    assert_eq!(promotion.phases, [("a".into(), Superseded), ("b".into(), Active)]);
}

#[test]
fn tables_that_are_not_verified_or_rejected_are_never_active() {
    let tables = [table("a", 1, None), table("b", 2, Some(Rejected))];
    assert_eq!(promotion(&tables, None), Promotion::default());
}

#[test]
fn an_older_candidate_is_superseded_and_a_superseded_table_stays_so() {
    let tables = [
        table("old", 1, Some(Candidate)),
        table("active", 2, Some(Active)),
        table("gone", 3, Some(Superseded)),
    ];
    let promotion = promotion(&tables, Some("active"));
    assert_eq!(promotion.active.as_deref(), Some("active"));
    assert_eq!(promotion.phases, [("old".into(), Superseded)]);
}

#[test]
fn an_interrupted_promotion_is_finished() {
    // The status names b, but the phases were not written.
    let tables = [table("a", 1, Some(Active)), table("b", 2, Some(Candidate))];
    assert_eq!(promotion(&tables, Some("b")).phases.len(), 2);
    // The status was lost.
    let tables = [table("a", 1, Some(Active))];
    assert_eq!(promotion(&tables, None).active.as_deref(), Some("a"));
}

#[test]
fn when_the_active_table_is_deleted_the_newest_that_fits_takes_its_place() {
    let mut other = table("other", 4, Some(Superseded));
    other.spec.fingerprint.geometry.layers = 7;
    let tables = [
        table("a", 1, Some(Superseded)),
        table("b", 2, Some(Superseded)),
        table("bad", 3, Some(Rejected)),
        other,
        table("unverified", 5, None),
    ];
    let fallen_back = promotion(&tables, Some("deleted"));
    assert_eq!(fallen_back.active.as_deref(), Some("b"));
    assert_eq!(fallen_back.phases, [("b".into(), Active)]);
    assert!(
        fallen_back
            .stands_in
            .unwrap()
            .starts_with("the active table was deleted")
    );
    // Nobody deleted it: the model changed back.
    assert!(
        promotion(&tables, Some("other"))
            .stands_in
            .unwrap()
            .contains("fits the model")
    );
    // Once it is active it is as good as any, and a candidate takes its place.
    let tables = [table("b", 2, Some(Active)), table("c", 6, Some(Candidate))];
    assert_eq!(promotion(&tables[..1], Some("b")).active.as_deref(), Some("b"));
    let next = promotion(&tables, Some("b"));
    assert_eq!((next.active.as_deref(), next.stands_in), (Some("c"), None));
}

#[test]
fn a_table_of_another_model_is_put_aside() {
    let mut other = table("a", 1, Some(Active));
    other.spec.fingerprint.geometry.layers = 7;
    let promotion = promotion(&[other], Some("a"));
    assert_eq!(promotion.active, None);
    assert_eq!(promotion.phases, [("a".into(), Superseded)]);
}

#[test]
fn the_active_and_four_more_tables_are_kept() {
    let mut tables: Vec<_> = (0..8).map(|n| table(&format!("t{n}"), n, Some(Superseded))).collect();
    tables[0].status.as_mut().unwrap().phase = Some(Active);
    tables.push(table("new", 9, None));
    assert_eq!(old_tables(&tables, Some("t0")), ["t3", "t2", "t1"]);
}

fn payload() -> Vec<u8> {
    let geometry = Geometry::new(6, 64, 4).unwrap();
    let transform = Transform::all_layers(TransformKind::Count, &geometry).unwrap();
    let dim = transform.dim();
    let mut centroids = vec![0.0; 4 * dim];
    for cluster in 0..4 {
        centroids[cluster * dim + cluster] = 1.0;
    }
    let table = Payload {
        version: 1,
        fingerprint: Fingerprint::new("tiny-moe", geometry),
        transform,
        centroids,
        tau: 0.1,
        baselines: coterie_locality::table::Baselines::default(),
        report: coterie_locality::fit::FitReport::default(),
        predictors: None,
        text: None,
    };
    table.encode(Precision::F32).unwrap()
}

fn published(bytes: &[u8]) -> CentroidTable {
    let mut table = table("t", 1, None);
    table.spec.digest = digest(bytes);
    table.spec.payload_bytes = i64::try_from(bytes.len()).unwrap();
    table
}

#[test]
fn a_whole_table_of_this_model_is_accepted() {
    let bytes = payload();
    let model = example("tiny-moe").spec.model;
    let (first, second) = bytes.split_at(100);
    assert_eq!(check(&published(&bytes), &[first, second], &model), Ok(()));
}

#[test]
fn harmed_foreign_or_misdescribed_tables_are_refused() {
    let bytes = payload();
    let model = example("tiny-moe").spec.model;
    let refuse = |table: &CentroidTable, chunks: &[&[u8]]| check(table, chunks, &model).unwrap_err();
    let (first, second) = bytes.split_at(100);
    assert!(refuse(&published(&bytes), &[second, first]).contains("digest"));
    assert!(refuse(&published(&bytes), &[first]).contains("digest"));
    let noise = b"not a table".as_slice();
    assert!(refuse(&published(noise), &[noise]).contains("centroid table"));
    let mut clusters = published(&bytes);
    clusters.spec.clusters = 5;
    assert!(refuse(&clusters, &[&bytes]).contains("4 clusters, 5 announced"));
    let mut renamed = published(&bytes);
    renamed.spec.fingerprint.model = "other".into();
    assert!(refuse(&renamed, &[&bytes]).contains("different models"));
    let mut other = model.clone();
    other.geometry.experts = 128;
    assert!(check(&published(&bytes), &[&bytes], &other).is_err());
}
