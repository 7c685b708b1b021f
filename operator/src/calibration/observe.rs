//! What the calibration controller reads.

use coterie_crds::v1alpha1::{CalibrationRun, CentroidTable};
use kube::{Api, api::ListParams};

use crate::{context::Context, error::Error, owner::Fleet};

/// Runs and tables of a fleet, read from the API server itself: a stale cache could start a run twice.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Runs.
    pub runs: Vec<CalibrationRun>,
    /// Tables.
    pub tables: Vec<CentroidTable>,
}

/// Reads runs and tables.
pub async fn observe(ctx: &Context, fleet: &Fleet) -> Result<Observed, Error> {
    let of_fleet = ListParams::default().fields(&format!("spec.deployment={}", fleet.name));
    let runs: Api<CalibrationRun> = Api::namespaced(ctx.client.clone(), &fleet.namespace);
    let tables: Api<CentroidTable> = Api::namespaced(ctx.client.clone(), &fleet.namespace);
    let (runs, tables) =
        futures::try_join!(runs.list(&of_fleet), tables.list(&of_fleet)).map_err(Error::read("runs and tables"))?;
    let mut runs = runs.items;
    // Runs of an earlier MoEDeployment of the same name are about to be collected.
    runs.retain(|r| {
        let mut owners = r.metadata.owner_references.iter().flatten();
        r.metadata.deletion_timestamp.is_none() && owners.all(|o| o.controller != Some(true) || o.uid == fleet.uid)
    });
    // A table belongs to the MoEDeployment that it was made for, not to a later one of the same name.
    let mut tables = tables.items;
    tables.retain(|t| {
        t.metadata.deletion_timestamp.is_none()
            && t.metadata.owner_references.iter().flatten().any(|o| o.uid == fleet.uid)
    });
    Ok(Observed { runs, tables })
}
