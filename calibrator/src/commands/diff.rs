//! `diff`: what differs between two tables, and how many samples change their cluster.

use coterie_locality::{
    CentroidTable, Sample, kmeans, nearest, predictor::PredictorReport, scores, transform::TransformKind,
};
use serde::Serialize;

use crate::{
    args::DiffArgs,
    error::Error,
    input::{self, TableFile},
    output::Done,
    progress::Progress,
    summary::{self, columns, lines},
};

/// Two tables side by side.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Difference {
    kind: &'static str,
    old: Side,
    new: Side,
    /// Old cluster of each new one, and the cosine of their centroids over the layers that both tables keep.
    clusters: Vec<Pair>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<Moves>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Side {
    digest: String,
    model: String,
    geometry: coterie_locality::Geometry,
    transform: TransformKind,
    kept_layers: Vec<u16>,
    clusters: usize,
    tau: f32,
    samples: u64,
    rho: Option<f64>,
    predicted_gain: Option<f64>,
    fit_mean: f64,
    skew: f64,
    /// Errors of the predictors when they were learned.
    predictors: Option<PredictorReport>,
    /// Width of the band of source Text.
    text_tau: Option<f32>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pair {
    old: Option<usize>,
    new: usize,
    similarity: Option<f32>,
    old_share: Option<f64>,
    new_share: f64,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Moves {
    /// Samples that both tables give a cluster.
    compared: u64,
    /// Without counts, or with a zero signature under either table.
    left_out: u64,
    /// Whose cluster number changes: routers keep workers by number.
    moved: u64,
    /// Whose cluster still changes when the new clusters are numbered as above.
    moved_aligned: u64,
}

/// Compares two tables.
///
/// # Errors
/// When a table or the samples cannot be read, or the tables are of different models.
pub fn diff(args: &DiffArgs) -> Result<Done, Error> {
    let (old, new) = (input::table(&args.old)?, input::table(&args.new)?);
    let (a, b) = (&old.table.fingerprint, &new.table.fingerprint);
    if a.geometry != b.geometry || a.model != b.model {
        let message = format!(
            "{} is of {} {}, {} of {} {}: tables of different models cannot be compared",
            args.old.display(),
            a.model,
            a.geometry,
            args.new.display(),
            b.model,
            b.geometry
        );
        return Err(Error::input("DifferentModels", message));
    }
    let clusters = align(&old.table, &new.table);
    let samples = match &args.samples {
        None => None,
        Some(path) => {
            let progress = Progress::spinner("routing samples", args.json);
            let mut moves = Moves::default();
            input::each(input::open(path)?, path, &args.reading, |sample, _| {
                moves.count(&old.table, &new.table, &clusters, &sample);
                progress.tick();
            })?;
            Some(moves)
        }
    };
    let told = Difference {
        kind: "difference",
        old: Side::of(&old),
        new: Side::of(&new),
        clusters,
        samples,
    };
    Ok(if args.json { summary::json(&told) } else { told.text() }.into())
}

impl Side {
    fn of(file: &TableFile) -> Self {
        let table = &file.table;
        Self {
            digest: file.digest.clone(),
            model: table.fingerprint.model.clone(),
            geometry: table.fingerprint.geometry,
            transform: table.transform.kind(),
            kept_layers: table.transform.kept_layers().to_vec(),
            clusters: table.clusters(),
            tau: table.tau,
            samples: table.report.samples,
            rho: table.report.rho,
            predicted_gain: table.report.predicted_gain,
            fit_mean: table.baselines.fit_mean,
            skew: table.baselines.skew,
            predictors: table.report.predictors,
            text_tau: table.text.as_ref().map(|text| text.tau),
        }
    }
}

/// Pairs clusters so that the sum of their centroids' cosines is highest.
fn align(old: &CentroidTable, new: &CentroidTable) -> Vec<Pair> {
    let (olds, news, dim) =
        kmeans::over_common_layers((&old.transform, &old.centroids), (&new.transform, &new.centroids));
    // The side with fewer clusters is numbered like the other, so that each of its clusters finds its partner.
    let partner: Vec<Option<usize>> = if new.clusters() >= old.clusters() {
        let numbers = kmeans::align(&olds, &news, dim).unwrap_or_default();
        numbers
            .into_iter()
            .map(|number| Some(number).filter(|n| *n < old.clusters()))
            .collect()
    } else {
        let numbers = kmeans::align(&news, &olds, dim).unwrap_or_default();
        (0..new.clusters())
            .map(|cluster| numbers.iter().position(|number| *number == cluster))
            .collect()
    };
    let (old_shares, new_shares) = (old.cluster_shares(), new.cluster_shares());
    (0..new.clusters())
        .map(|cluster| {
            let old = partner.get(cluster).copied().flatten();
            let row = |rows: &[f32], at: usize| rows.get(at * dim..(at + 1) * dim).map(<[f32]>::to_vec);
            let similarity = old.and_then(|old| {
                let (a, b) = (row(&olds, old)?, row(&news, cluster)?);
                Some(a.iter().zip(&b).map(|(x, y)| x * y).sum())
            });
            Pair {
                old,
                new: cluster,
                similarity,
                old_share: old.and_then(|old| old_shares.get(old).copied()),
                new_share: new_shares.get(cluster).copied().unwrap_or(0.0),
            }
        })
        .collect()
}

/// Cluster that a router gives a request.
fn cluster(table: &CentroidTable, sample: &Sample) -> Option<usize> {
    let counts = sample.prefill_counts.as_ref()?;
    let mut signature = vec![0.0; table.transform.dim()];
    let norm = table.transform.signature(counts, &mut signature).ok()?;
    let mut similarity = vec![0.0; table.clusters()];
    scores(table, &signature, &mut similarity).ok()?;
    (norm > 0.0).then(|| nearest(&similarity).map(|found| found.cluster))?
}

impl Moves {
    fn count(&mut self, old: &CentroidTable, new: &CentroidTable, pairs: &[Pair], sample: &Sample) {
        let (Some(before), Some(after)) = (cluster(old, sample), cluster(new, sample)) else {
            self.left_out += 1;
            return;
        };
        self.compared += 1;
        self.moved += u64::from(before != after);
        let aligned = pairs.get(after).and_then(|pair| pair.old);
        self.moved_aligned += u64::from(aligned != Some(before));
    }
}

impl Difference {
    fn text(&self) -> String {
        let (old, new) = (&self.old, &self.new);
        let changed = |a: String, b: String| {
            if a == b {
                format!("{a} (same)")
            } else {
                format!("{a} -> {b}")
            }
        };
        let number = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| format!("{value:.3}"));
        let error = |side: &Side, of: fn(&PredictorReport) -> Option<f64>| {
            let found = side.predictors.as_ref().and_then(of);
            found.map_or_else(|| "none".to_owned(), |error| format!("{:.1} x 10^-4", error * 1e4))
        };
        let layers = |side: &Side| {
            if side.kept_layers.len() == side.geometry.layers {
                format!("all {}", side.geometry.layers)
            } else {
                format!("{:?}", side.kept_layers)
            }
        };
        let head = lines([
            ("digest", Some(changed(old.digest.clone(), new.digest.clone()))),
            ("model", Some(format!("{} {}", new.model, new.geometry))),
            (
                "transform",
                Some(changed(format!("{:?}", old.transform), format!("{:?}", new.transform))),
            ),
            ("layers", Some(changed(layers(old), layers(new)))),
            (
                "clusters",
                Some(changed(old.clusters.to_string(), new.clusters.to_string())),
            ),
            (
                "tau",
                Some(changed(format!("{:.4}", old.tau), format!("{:.4}", new.tau))),
            ),
            (
                "samples",
                Some(changed(old.samples.to_string(), new.samples.to_string())),
            ),
            ("rho", Some(changed(number(old.rho), number(new.rho)))),
            (
                "predicted gain",
                Some(changed(number(old.predicted_gain), number(new.predicted_gain))),
            ),
            (
                "baseline fit",
                Some(changed(format!("{:.4}", old.fit_mean), format!("{:.4}", new.fit_mean))),
            ),
            (
                "baseline skew",
                Some(changed(format!("{:.2}", old.skew), format!("{:.2}", new.skew))),
            ),
            (
                "map of text, error",
                Some(changed(error(old, |p| p.text_error), error(new, |p| p.text_error))),
            ),
            (
                "mix, error",
                Some(changed(error(old, |p| p.mixed_error), error(new, |p| p.mixed_error))),
            ),
            (
                "tau of source Text",
                Some(changed(
                    number(old.text_tau.map(f64::from)),
                    number(new.text_tau.map(f64::from)),
                )),
            ),
            ("samples moved", self.samples.as_ref().map(Moves::text)),
        ]);
        format!("{head}\n\n{}", columns(&self.pairs()))
    }

    /// Rows of the clusters.
    fn pairs(&self) -> Vec<Vec<String>> {
        let mut rows = vec![
            ["new", "old", "cosine", "old share", "new share"]
                .map(str::to_owned)
                .to_vec(),
        ];
        rows.extend(self.clusters.iter().map(|pair| {
            vec![
                pair.new.to_string(),
                pair.old.map_or_else(|| "-".to_owned(), |old| old.to_string()),
                pair.similarity.map_or_else(|| "-".to_owned(), |s| format!("{s:.3}")),
                pair.old_share
                    .map_or_else(|| "-".to_owned(), |share| format!("{share:.3}")),
                format!("{:.3}", pair.new_share),
            ]
        }));
        rows
    }
}

impl Moves {
    fn text(&self) -> String {
        let share = |part: u64| {
            if self.compared == 0 {
                0.0
            } else {
                part as f64 * 100.0 / self.compared as f64
            }
        };
        format!(
            "{} of {} ({:.1} %) change their cluster number, {} ({:.1} %) their cluster; {} left out",
            self.moved,
            self.compared,
            share(self.moved),
            self.moved_aligned,
            share(self.moved_aligned),
            self.left_out
        )
    }
}
