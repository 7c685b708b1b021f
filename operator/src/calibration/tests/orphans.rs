use coterie_crds::v1alpha1::{
    RunPhase::{Failed, Pending},
    RunReason::Manual,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::{calibration::orphan::status, testing::run};

#[test]
fn a_run_without_a_deployment_says_which_once() {
    let mut orphan = run("r", 1, Manual, Pending);
    orphan.status = None;
    let told = status(&orphan).unwrap();
    assert_eq!(
        (told.phase, told.reason.as_deref()),
        (Pending, Some("DeploymentNotFound"))
    );
    assert!(told.message.as_ref().unwrap().contains("no MoEDeployment tiny-moe"));
    orphan.status = Some(told);
    assert_eq!(status(&orphan), None, "nothing new");
}

#[test]
fn finished_and_owned_runs_are_left_alone() {
    assert_eq!(status(&run("r", 1, Manual, Failed)), None);
    let mut owned = run("r", 1, Manual, Pending);
    owned.metadata.owner_references = Some(vec![OwnerReference::default()]);
    assert_eq!(status(&owned), None, "it is collected with its owner");
}
