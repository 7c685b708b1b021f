use coterie_crds::v1alpha1::{
    CalibrationRun, MoEDeploymentSpec,
    RunPhase::{Failed, Pending, Running, Succeeded},
    RunReason::{self, Drift, Initial, Manual},
};

use crate::{
    calibration::{
        collect::old_runs,
        queue::queue,
        wanted::{Situation, WantedRun, wanted},
    },
    testing::{at, example, run},
};

fn spec(request_id: Option<&str>) -> MoEDeploymentSpec {
    let mut spec = example("tiny-moe").spec;
    spec.calibration.request_id = request_id.map(Into::into);
    spec
}

fn situation<'a>(spec: &'a MoEDeploymentSpec, runs: &'a [CalibrationRun]) -> Situation<'a> {
    Situation {
        deployment: "tiny-moe",
        spec,
        observed_request_id: None,
        runs,
        tables: 0,
        usable_table: false,
        available: true,
        ready: true,
    }
}

fn named(name: &str, reason: RunReason) -> WantedRun {
    WantedRun {
        name: name.into(),
        reason,
    }
}

#[test]
fn the_first_run_starts_when_the_fleet_serves_and_only_once() {
    let spec = spec(None);
    let early = Situation {
        available: false,
        ..situation(&spec, &[])
    };
    assert_eq!(wanted(early), None);
    assert_eq!(wanted(situation(&spec, &[])), Some(named("tiny-moe-initial", Initial)));
    let runs = [run("tiny-moe-initial", 1, Initial, Failed)];
    assert_eq!(
        wanted(situation(&spec, &runs)),
        None,
        "a failed first run is not repeated without a wish"
    );
}

#[test]
fn a_new_request_id_starts_exactly_one_run() {
    let spec = spec(Some("monday"));
    let first = wanted(situation(&spec, &[])).unwrap();
    assert_eq!(first.reason, Initial);
    let runs = [run(&first.name, 1, Initial, Succeeded)];
    assert_eq!(
        wanted(situation(&spec, &runs)),
        None,
        "the run exists, although the status was not written"
    );
    let echoed = Situation {
        observed_request_id: Some("monday"),
        tables: 1,
        usable_table: true,
        ..situation(&spec, &[])
    };
    assert_eq!(
        wanted(echoed),
        None,
        "the status says so, although the run was collected"
    );
    let tuesday = self::spec(Some("tuesday"));
    let next = Situation {
        spec: &tuesday,
        runs: &runs,
        ..echoed
    };
    let next = wanted(next).unwrap();
    assert_eq!(next.reason, Manual);
    assert_ne!(next.name, first.name);
}

#[test]
fn a_new_model_is_calibrated_when_all_workers_have_it() {
    let mut spec = spec(None);
    spec.model.geometry.experts = 128;
    let runs = [run("tiny-moe-initial", 1, Initial, Succeeded)];
    let changed = Situation {
        tables: 1,
        ..situation(&spec, &runs)
    };
    assert_eq!(
        wanted(Situation {
            ready: false,
            ..changed
        }),
        None
    );
    let name = wanted(changed).unwrap().name;
    assert!(name.starts_with("tiny-moe-initial-"), "{name}");
}

#[test]
fn one_run_at_a_time_and_the_newest_waiting_one_is_next() {
    let runs = [
        run("c", 3, Manual, Pending),
        run("a", 1, Initial, Running),
        run("b", 2, Manual, Pending),
        run("d", 3, Manual, Pending),
        run("z", 0, Initial, Succeeded),
    ];
    let queue = queue(&runs);
    assert_eq!(queue.running, ["a"]);
    assert_eq!(queue.next.as_deref(), Some("d"), "equal times: by name");
    assert_eq!(queue.superseded, ["b", "c"]);
}

#[test]
fn finished_runs_of_the_last_day_are_kept_and_older_ones_beyond_twenty_are_not() {
    let day = 86_400;
    let mut runs: Vec<_> = (0..25).map(|n| run(&format!("r{n:02}"), n, Drift, Succeeded)).collect();
    runs.push(run("waiting", 0, Manual, Pending));
    assert!(old_runs(&runs, &at(day - 1)).is_empty());
    let old = old_runs(&runs, &at(day * 2));
    assert_eq!(old, ["r04", "r03", "r02", "r01", "r00"]);
}
