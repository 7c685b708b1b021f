use coterie_crds::{
    outcome::{Outcome, OutcomeClass},
    v1alpha1::{CalibrationRunStatus, CentroidTable, RunPhase, TablePhase},
};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};

use crate::{
    calibration::attempt::{PodsSay, advance, table_of},
    testing::{at, table},
};

fn job(condition: Option<(&str, &str)>) -> Job {
    Job {
        status: Some(JobStatus {
            failed: Some(1),
            conditions: condition.map(|(kind, reason)| {
                vec![JobCondition {
                    type_: kind.into(),
                    status: "True".into(),
                    reason: Some(reason.into()),
                    message: Some("job says".into()),
                    last_transition_time: Some(at(100)),
                    ..JobCondition::default()
                }]
            }),
            ..JobStatus::default()
        }),
        ..Job::default()
    }
}

fn outcome(reason: &str) -> PodsSay {
    PodsSay {
        outcome: Some(Outcome {
            class: OutcomeClass::Input,
            reason: reason.into(),
            message: "12 samples, 200 needed".into(),
            table: None,
            report: None,
        }),
        trouble: None,
    }
}

fn status(job: Option<&Job>, pods: &PodsSay, table: Option<&CentroidTable>, now: i64) -> CalibrationRunStatus {
    let before = CalibrationRunStatus {
        phase: RunPhase::Running,
        start_time: Some(at(1)),
        ..CalibrationRunStatus::default()
    };
    advance(&before, job, pods, table, &at(now))
}

fn is(status: &CalibrationRunStatus) -> (RunPhase, &str) {
    (status.phase, status.reason.as_deref().unwrap_or_default())
}

#[test]
fn a_run_succeeds_when_its_table_is_verified() {
    let done = job(Some(("Complete", "CompletionsReached")));
    let none = PodsSay::default();
    assert_eq!(
        is(&status(Some(&done), &none, None, 101)),
        (RunPhase::Running, "Verifying")
    );
    let fresh = table("t", 1, None);
    assert_eq!(
        is(&status(Some(&done), &none, Some(&fresh), 101)),
        (RunPhase::Running, "Verifying")
    );
    let verified = table("t", 1, Some(TablePhase::Candidate));
    let succeeded = status(Some(&done), &none, Some(&verified), 102);
    assert_eq!(is(&succeeded), (RunPhase::Succeeded, "TablePublished"));
    assert_eq!(succeeded.table.as_deref(), Some("t"));
    assert_eq!(succeeded.report.unwrap().samples, 300);
    assert_eq!(succeeded.completion_time, Some(at(102)));
    let rejected = table("t", 1, Some(TablePhase::Rejected));
    assert_eq!(
        is(&status(Some(&done), &none, Some(&rejected), 103)),
        (RunPhase::Failed, "TableRejected")
    );
    assert_eq!(
        is(&status(Some(&done), &none, None, 100 + 601)),
        (RunPhase::Failed, "TableMissing")
    );
}

#[test]
fn a_failed_run_says_what_the_calibrator_said() {
    let failed = job(Some(("Failed", "PodFailurePolicy")));
    let said = status(Some(&failed), &outcome("TooFewSamples"), None, 101);
    assert_eq!(is(&said), (RunPhase::Failed, "TooFewSamples"));
    assert_eq!(said.message.as_deref(), Some("12 samples, 200 needed"));
    let silent = status(Some(&failed), &PodsSay::default(), None, 101);
    assert_eq!(is(&silent), (RunPhase::Failed, "PodFailurePolicy"));
    assert_eq!(silent.message.as_deref(), Some("job says"));
}

#[test]
fn a_running_run_shows_trouble_and_retries() {
    let running = job(None);
    let stuck = PodsSay {
        outcome: None,
        trouble: Some("ImagePullBackOff (image c:1)".into()),
    };
    assert_eq!(
        is(&status(Some(&running), &stuck, None, 2)),
        (RunPhase::Running, "PodNotStarting")
    );
    assert_eq!(
        is(&status(Some(&running), &outcome("x"), None, 2)),
        (RunPhase::Running, "Retrying")
    );
    assert_eq!(
        is(&status(Some(&running), &PodsSay::default(), None, 2)),
        (RunPhase::Running, "JobRunning")
    );
}

#[test]
fn a_lost_job_fails_unless_its_table_is_there() {
    let none = PodsSay::default();
    assert_eq!(is(&status(None, &none, None, 2)), (RunPhase::Failed, "JobLost"));
    let active = table("t", 1, Some(TablePhase::Active));
    assert_eq!(
        is(&status(None, &none, Some(&active), 2)),
        (RunPhase::Succeeded, "TablePublished")
    );
}

#[test]
fn of_several_tables_of_a_run_a_verified_one_counts() {
    let mut second = table("r-2", 5, Some(TablePhase::Candidate));
    second.spec.run = "r".into();
    let mut third = table("r-3", 6, None);
    third.spec.run = "r".into();
    let tables = [table("r", 4, Some(TablePhase::Rejected)), second, third];
    assert_eq!(table_of("r", &tables).unwrap().metadata.name.as_deref(), Some("r-2"));
}
