//! A table's baselines as the judge needs them: the CentroidTable carries them as decimal strings.

use coterie_crds::v1alpha1::CentroidTable;
use coterie_locality::table::Baselines;

/// Reads the baselines; `None` when a number cannot be read.
pub fn of(table: &CentroidTable) -> Option<Baselines> {
    let stated = &table.spec.baselines;
    let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
    Some(Baselines {
        requests: stated.samples.max(0).unsigned_abs().into(),
        fit_mean: number(&stated.fit)?,
        fit_se: number(&stated.fit_error)?,
        skew: number(&stated.skew)?,
        cluster_shares: stated.cluster_shares.iter().map(|s| number(s)).collect::<Option<_>>()?,
        ..Baselines::default()
    })
}
