use coterie_crds::v1alpha1::{CalibrationSource, RunPhase, RunReason};

use crate::{
    calibration::job::{Source, job, source},
    owner::Fleet,
    testing::{at, example, golden, run},
};

#[test]
fn jobs_render_as_committed() {
    let deployment = example("tiny-moe");
    let fleet = Fleet::of(&deployment).unwrap();
    let initial = run("tiny-moe-initial", 1, RunReason::Initial, RunPhase::Pending);
    let mut drift = run("tiny-moe-drift-7", 1, RunReason::Drift, RunPhase::Pending);
    drift.spec.source = Some(CalibrationSource::Live);
    drift.spec.samples_since = Some(at(1_800_000_000));
    let rendered = [initial, drift].map(|run| {
        let source = source(&run, &deployment.spec).unwrap();
        let job = job(&fleet, &deployment, &run, &source, "registry.example/calibrator:1");
        serde_yaml_ng::to_string(&job).unwrap()
    });
    let rendered = format!("---\n{}", rendered.join("---\n"));
    golden("calibration-jobs.yaml", &rendered);
}

#[test]
fn the_source_is_prompts_if_given_else_live() {
    let mut deployment = example("tiny-moe");
    let manual = run("r", 1, RunReason::Manual, RunPhase::Pending);
    assert!(matches!(source(&manual, &deployment.spec), Ok(Source::Prompts(_))));
    deployment.spec.calibration.prompts = None;
    assert_eq!(source(&manual, &deployment.spec).unwrap(), Source::Live { since_ms: 0 });
    let mut prompts = manual.clone();
    prompts.spec.source = Some(CalibrationSource::Prompts);
    let error = source(&prompts, &deployment.spec).unwrap_err();
    assert!(error.to_string().contains("spec.calibration.prompts"), "{error}");
}
