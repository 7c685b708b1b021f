use coterie_crds::v1alpha1::{CentroidTable, MoEDeploymentStatus, PoolStatus, TablePhase::Active};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::{
    calibration::status::{Facts, derive, hinders},
    testing::{at, example, table},
};

fn calibrated(active: &CentroidTable, decode_workers: i32) -> String {
    let facts = Facts {
        runs: &[],
        active: Some(active),
        document: None,
        observed_request_id: None,
        gate: None,
        next_eligible: None,
        generation: Some(1),
        decode_workers,
    };
    let (status, _) = derive(&facts, &MoEDeploymentStatus::default(), &at(1));
    let conditions: Vec<Condition> =
        serde_json::from_value(serde_json::to_value(status).unwrap()["conditions"].clone()).unwrap();
    let calibrated = conditions.iter().find(|c| c.type_ == "Calibrated").unwrap();
    assert_eq!(calibrated.status, "True");
    calibrated.message.clone()
}

#[test]
fn a_table_for_another_number_of_workers_is_named() {
    let mut active = table("t", 1, Some(Active));
    assert_eq!(
        calibrated(&active, 4),
        "CentroidTable t is active: 4 clusters, rho 0.62"
    );
    assert!(calibrated(&active, 3).ends_with("; 4 clusters for 3 workers; set a new requestID to fit again"));
    active.status.as_mut().unwrap().message = Some("the active table was deleted".into());
    assert!(calibrated(&active, 4).ends_with("; the active table was deleted"));
}

#[test]
fn a_run_waits_for_a_prefill_worker_where_some_are_declared() {
    let mut spec = example("tiny-moe").spec;
    let mut current = MoEDeploymentStatus::default();
    assert!(hinders(&current, &spec).is_some(), "it does not serve");
    current.conditions.push(Condition {
        type_: "Available".into(),
        status: "True".into(),
        reason: "Serving".into(),
        message: String::new(),
        last_transition_time: at(1),
        observed_generation: None,
    });
    assert!(
        hinders(&current, &spec)
            .unwrap()
            .starts_with("no prefill worker is ready")
    );
    current.prefill = Some(PoolStatus {
        desired: 2,
        replicas: 2,
        ready: 1,
        updated: 1,
        summary: "1/2".into(),
    });
    assert_eq!(hinders(&current, &spec), None);
    current.prefill = None;
    spec.prefill = None;
    assert_eq!(hinders(&current, &spec), None);
}
