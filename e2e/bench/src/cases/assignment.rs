//! One balanced assignment: samples to clusters of bounded size at least cost. Beside SciPy's Hungarian method on the replicated matrix
//! and the solver of k-means-constrained.

use std::time::Duration;

use anyhow::Context as _;
use coterie_locality::{
    Geometry,
    kmeans::{Balance, KMeansOptions, assign_with_capacities, kmeans},
    score::dot,
};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::signatures::unit_signatures;
use crate::{
    exchange::write_f32,
    peer::{path, seconds},
    report::Table,
    suite::{Suite, say},
    timing::{Times, human},
};

/// After this SciPy is stopped.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measures all sizes.
pub(super) fn run(suite: &mut Suite) -> anyhow::Result<()> {
    let mut table = Table::new(
        "assignment",
        [
            "N x K",
            "ours",
            "k-means-constrained",
            "of this its solver",
            "SciPy",
            "fastest peer / ours",
            "our objective",
            "k-m-c - ours",
            "SciPy - ours",
        ],
    );
    let sizes: &[(usize, usize)] = if suite.quick {
        &[(1000, 16)]
    } else {
        &[(1000, 16), (1000, 64), (10_000, 16), (20_000, 16)]
    };
    for (samples, clusters) in sizes {
        say(&format!("assignment {samples}x{clusters}"));
        one(suite, *samples, *clusters, &mut table)?;
    }
    suite.report.table(table);
    Ok(())
}

fn one(suite: &mut Suite, samples: usize, clusters: usize, table: &mut Table) -> anyhow::Result<()> {
    let costs = costs(samples, clusters)?;
    let most = samples.div_ceil(clusters);
    let file = suite.file(&format!("costs-{samples}-{clusters}.npy"));
    write_f32(&file, &[samples, clusters], &costs)?;
    let arguments = json!({"costs": path(&file), "most": most});
    // Neither peer uses threads here.
    let (mut flow, mut scipy) = (suite.python.start(1)?, Some(suite.python.start(1)?));
    let (mut ours, mut flows, mut solvers, mut hungarian) = <(Times, Times, Times, Times)>::default();
    let (mut flow_objective, mut scipy_objective) = (f64::NAN, f64::NAN);
    for _ in 0..suite.rounds(if samples <= 1000 { 9 } else { 3 }, 2) {
        ours.add(Times::of(3, |_| assign_with_capacities(&costs, clusters, 0, most)));
        let answer = flow.call("assign_flow", &arguments)?;
        flows.add(seconds(&answer)?);
        solvers.add(Times::from_seconds(answer["solver"].as_f64().into_iter().collect()));
        flow_objective = objective(&costs, clusters, &peer_labels(&answer)?);
        let Some(peer) = &mut scipy else { continue };
        match peer.try_call("assign_hungarian", &arguments, PATIENCE)? {
            Some(answer) => {
                hungarian.add(seconds(&answer)?);
                scipy_objective = objective(&costs, clusters, &peer_labels(&answer)?);
            }
            None => scipy = None,
        }
    }
    let labels = assign_with_capacities(&costs, clusters, 0, most)?;
    let own = objective(&costs, clusters, &labels);
    let finished = scipy.is_some();
    let fastest = flows.median().min(hungarian.median());
    table.row([
        format!("{samples} x {clusters}"),
        human(ours.median()),
        human(flows.median()),
        human(solvers.median()),
        if finished {
            human(hungarian.median())
        } else {
            format!("over {} s", PATIENCE.as_secs())
        },
        format!("{:.0}", fastest / ours.median()),
        format!("{own:.6}"),
        format!("{:+.1e}", flow_objective - own),
        if finished {
            format!("{:+.1e}", scipy_objective - own)
        } else {
            "-".to_owned()
        },
    ]);
    // k-means-constrained rounds costs to whole numbers, a millionth here: half of one per sample is its due.
    let least = flow_objective.min(scipy_objective);
    let met = own <= least + 1e-9 * own && flow_objective - own <= samples as f64 * 0.5e-6 + 1e-9;
    suite.report.bar(
        format!("objective of one assignment, {samples} x {clusters}"),
        "at most the peers'",
        format!("{:+.1e}", own - least),
        met,
    );
    Ok(())
}

/// What samples pay in each cluster of a K-means that nobody balanced: busy domains want more than their clusters hold.
fn costs(samples: usize, clusters: usize) -> anyhow::Result<Vec<f32>> {
    let (rows, dim) = unit_signatures(Geometry::new(48, 128, 8)?, samples, 21)?;
    let few = &rows[..samples.min(1000) * dim];
    let options = KMeansOptions {
        clusters,
        restarts: 1,
        max_iterations: 10,
        balance: Balance::None,
        ..KMeansOptions::default()
    };
    let centroids = kmeans(few, dim, &[], None, &options)?.centroids;
    let cost = |row: &[f32]| -> Vec<f32> { centroids.chunks_exact(dim).map(|c| 1.0 - dot(row, c)).collect() };
    Ok(rows.par_chunks_exact(dim).flat_map_iter(cost).collect())
}

fn objective(costs: &[f32], clusters: usize, labels: &[u32]) -> f64 {
    let paid = costs.chunks_exact(clusters).zip(labels);
    paid.map(|(row, label)| row.get(*label as usize).map_or(f64::INFINITY, |c| f64::from(*c)))
        .sum()
}

/// The labels in a peer's answer.
pub(super) fn peer_labels(answer: &Value) -> anyhow::Result<Vec<u32>> {
    let list = answer["labels"].as_array().context("the peer's answer has no labels")?;
    let label = |value: &Value| value.as_u64().and_then(|label| u32::try_from(label).ok());
    list.iter()
        .map(label)
        .collect::<Option<_>>()
        .context("a label is not a number")
}
