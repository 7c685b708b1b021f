//! Which table is active. A verified candidate newer than the active table takes its place at once; when the active table is deleted, the
//! newest that fits takes it.

use coterie_crds::v1alpha1::{CentroidTable, Model, TablePhase};
use kube::ResourceExt;

use super::verify::fits;

/// What should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promotion {
    /// Name of the active table.
    pub active: Option<String>,
    /// Tables whose phase should change.
    pub phases: Vec<(String, TablePhase)>,
    /// Why a superseded table becomes active again, for people.
    pub stands_in: Option<&'static str>,
}

const DELETED: &str = "the active table was deleted; set a new requestID to fit again";
const UNFIT: &str = "no newer table fits the model; set a new requestID to fit again";

fn phase(table: &CentroidTable) -> Option<TablePhase> {
    table.status.as_ref().and_then(|s| s.phase)
}

/// Tables from oldest to newest.
pub fn by_age(tables: &[CentroidTable]) -> Vec<&CentroidTable> {
    let mut sorted: Vec<&CentroidTable> = tables
        .iter()
        .filter(|t| t.metadata.deletion_timestamp.is_none())
        .collect();
    sorted.sort_by_key(|t| (t.metadata.creation_timestamp.as_ref().map(|t| t.0), t.name_any()));
    sorted
}

/// Decides. `current` is the table that the status names.
pub fn decide(tables: &[CentroidTable], current: Option<&str>, model: &Model) -> Promotion {
    let sorted = by_age(tables);
    let usable = |t: &CentroidTable| fits(t, model) && phase(t).is_some_and(|p| p != TablePhase::Rejected);
    let position = |name: &str| sorted.iter().position(|t| t.name_any() == name && usable(t));
    // A status that was lost is found again through the phase.
    let left = current.is_some_and(|name| sorted.iter().all(|t| t.name_any() != name));
    let current = current.and_then(position).or_else(|| {
        sorted
            .iter()
            .rposition(|t| usable(t) && phase(t) == Some(TablePhase::Active))
    });
    let candidate = sorted
        .iter()
        .rposition(|t| usable(t) && phase(t) == Some(TablePhase::Candidate))
        .filter(|candidate| current.is_none_or(|c| *candidate > c));
    // Nothing newer waits and the active one is gone or does not fit: an older table is better than none.
    let fallback = || sorted.iter().rposition(|t| usable(t));
    let active = candidate.or(current).or_else(fallback);
    let stands_in = active
        .filter(|index| phase(sorted[*index]) == Some(TablePhase::Superseded))
        .map(|_| if left { DELETED } else { UNFIT });
    let phases = sorted
        .iter()
        .enumerate()
        .filter_map(|(index, table)| {
            let wanted = match phase(table)? {
                TablePhase::Rejected => return None,
                _ if Some(index) == active => TablePhase::Active,
                TablePhase::Candidate | TablePhase::Active => TablePhase::Superseded,
                TablePhase::Superseded => return None,
            };
            (phase(table) != Some(wanted)).then(|| (table.name_any(), wanted))
        })
        .collect();
    Promotion {
        active: active.map(|index| sorted[index].name_any()),
        phases,
        stands_in,
    }
}
