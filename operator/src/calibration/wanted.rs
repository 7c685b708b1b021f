//! Whether a run should be created now.

use coterie_crds::v1alpha1::{CalibrationRun, MoEDeploymentSpec, RunReason};
use kube::ResourceExt;

use super::run_names;

/// A run to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedRun {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: RunReason,
}

/// What the decision rests on.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Name of the MoEDeployment.
    pub deployment: &'a str,
    /// Its spec.
    pub spec: &'a MoEDeploymentSpec,
    /// The last requestID that a run was started for.
    pub observed_request_id: Option<&'a str>,
    /// All runs of the fleet.
    pub runs: &'a [CalibrationRun],
    /// Tables of the fleet, of any fingerprint.
    pub tables: usize,
    /// Whether one of them fits the spec's model and may still be used.
    pub usable_table: bool,
    /// Whether the fleet serves, and has the workers that a run collects from.
    pub available: bool,
    /// Whether all of it is as declared.
    pub ready: bool,
}

/// The run that is wanted and does not exist.
///
/// A new requestID asks for one at once; it waits until the fleet serves. Without any run the first one is made when the fleet serves.
/// After a change of the model, one is made when all workers have it.
pub fn wanted(situation: Situation<'_>) -> Option<WantedRun> {
    let exists = |name: &str| situation.runs.iter().any(|r| r.name_any() == name);
    let first = situation.runs.is_empty() && situation.tables == 0;
    let requested = situation.spec.calibration.request_id.as_deref();
    if let Some(id) = requested.filter(|id| situation.observed_request_id != Some(*id)) {
        let name = run_names::requested(situation.deployment, id);
        let reason = if first { RunReason::Initial } else { RunReason::Manual };
        return (!exists(&name)).then_some(WantedRun { name, reason });
    }
    if situation.usable_table {
        return None;
    }
    let name = if first {
        situation.available.then(|| run_names::initial(situation.deployment))?
    } else if situation.tables > 0 && situation.ready {
        run_names::initial_for(situation.deployment, &situation.spec.model)
    } else {
        return None;
    };
    (!exists(&name)).then_some(WantedRun {
        name,
        reason: RunReason::Initial,
    })
}
