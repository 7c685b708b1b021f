//! The route decision: counts to signature, similarities to all centroids, a worker of the band. Beside numpy doing the same.

use std::collections::BTreeMap;

use coterie_locality::{
    Assignment, Candidates, CentroidTable, FitOptions, Geometry, Policy as _, assign, fit,
    fit::LayerChoice,
    policy::{LocalityBand, Ties},
    score::{Scorer, Scratch},
    scores,
};
use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

use crate::{
    exchange::{write_f32, write_u32},
    peer::{self, path, seconds},
    report::Table,
    suite::{Suite, say},
    synthetic::{Request, Traffic},
    timing::{Times, human, read_floor},
};

/// Requests whose choices are compared.
const REQUESTS: usize = 256;
/// Requests that timed calls go through in turn: few, so that their counts are in cache, as just after counting.
const TIMED: usize = 32;
/// Width of the band in these measurements.
const TAU: f32 = 0.05;

/// Measures all sizes.
pub(super) fn run(suite: &mut Suite) -> anyhow::Result<()> {
    let mut table = Table::new(
        "route",
        [
            "geometry",
            "K",
            "ours p50",
            "ours p99",
            "numpy as written p50",
            "numpy tight, 1 thread",
            "tight, 2 threads",
            "as written / ours",
            "tight / ours",
            "same worker",
        ],
    );
    let mut stages = Table::new(
        "route/stages",
        [
            "geometry",
            "K",
            "similarities",
            "similarities in f32",
            "choice",
            "bytes read",
            "read floor",
            "whole / floor",
        ],
    );
    let clusters: &[usize] = if suite.quick { &[16] } else { &[8, 16, 64] };
    for geometry in [Geometry::new(48, 128, 8)?, Geometry::new(58, 256, 8)?] {
        for k in clusters {
            say(&format!("route {}x{} K={k}", geometry.layers, geometry.experts));
            let decision = Decision::new(geometry, *k)?;
            compare(suite, &decision, &mut table)?;
            decision.stages(suite.rounds(5, 1), &mut stages);
        }
    }
    suite.report.table(table);
    suite.report.table(stages);
    Ok(())
}

/// A table, a fleet and requests.
struct Decision {
    table: CentroidTable,
    scorer: Scorer,
    assignment: Assignment,
    requests: Vec<Request>,
    /// Loads of the workers at each request.
    loads: Vec<Vec<f32>>,
    band: LocalityBand,
}

impl Decision {
    fn new(geometry: Geometry, clusters: usize) -> anyhow::Result<Self> {
        let traffic = Traffic::new(geometry, 11);
        // Without decode counts a fit is quick; its centroids are as good for timing.
        let mut samples = traffic.samples((clusters * 8).max(256))?;
        for sample in &mut samples {
            sample.decode_counts = None;
        }
        let options = FitOptions {
            clusters,
            layer_selection: LayerChoice::All,
            restarts: 1,
            predictors: None,
            ..FitOptions::default()
        };
        let (table, _) = fit(&samples, &options, None)?;
        let names: Vec<String> = (0..clusters).map(|worker| format!("worker-{worker:03}")).collect();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let loads = (0..REQUESTS)
            .map(|_| (0..clusters).map(|_| rng.gen_range(4..12u8).into()).collect())
            .collect();
        Ok(Self {
            scorer: Scorer::new(&table.transform, &table.centroids)?,
            assignment: assign(&table.cluster_shares(), &names, &BTreeMap::default()),
            requests: traffic.requests(1_000_000, REQUESTS)?,
            loads,
            band: LocalityBand {
                tau: TAU,
                min_candidates: 1,
                max_load_ratio: Some(1.5),
                ties: Ties::Spread,
            },
            table,
        })
    }

    /// Workers chosen by ELDR's rule without guard, ties going to the lowest index: what numpy computes too.
    fn plain_choices(&self) -> Vec<Option<u64>> {
        let plain = LocalityBand {
            max_load_ratio: None,
            ties: Ties::LowestIndex,
            ..self.band
        };
        let mut call = Buffers::new(self);
        (0..REQUESTS)
            .map(|i| call.decide(self, &plain, i).map(|worker| worker as u64))
            .collect()
    }

    fn geometry(&self) -> String {
        let geometry = self.table.transform.geometry();
        format!("{}x{}", geometry.layers, geometry.experts)
    }

    fn stages(&self, rounds: usize, table: &mut Table) {
        let mut buffers = Buffers::new(self);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let calls = 1000;
        let (mut score, mut exact, mut choose, mut whole, mut floor) = <(Times, Times, Times, Times, Times)>::default();
        // Four bytes each of a count, a weight and a cell read back, two of a rounded cell and of every centroid's.
        let bytes = 14 * self.table.transform.dim() + self.scorer.bytes();
        let mut signature = vec![0.0; self.table.transform.dim()];
        for _ in 0..rounds {
            score.add(Times::of(calls, |i| {
                let counts = &self.requests[i % TIMED].prefill;
                self.scorer
                    .scores_of_counts(counts, &mut buffers.scratch, &mut buffers.scores)
            }));
            exact.add(Times::of(calls, |i| {
                let counts = &self.requests[i % TIMED].prefill;
                let norm = self.table.transform.signature(counts, &mut signature).ok();
                norm.and_then(|_| scores(&self.table, &signature, &mut buffers.scores).ok())
            }));
            choose.add(Times::of(calls, |i| {
                self.assignment.similarity(&buffers.scores, &mut buffers.similarity);
                let candidates = Candidates {
                    loads: &self.loads[i % TIMED],
                    similarity: Some(&buffers.similarity),
                    ..Candidates::default()
                };
                self.band.choose(&candidates, &mut rng)
            }));
            whole.add(Times::of(calls, |i| buffers.decide(self, &self.band, i % TIMED)));
            floor.add(read_floor(bytes, calls));
        }
        table.row([
            self.geometry(),
            self.table.clusters().to_string(),
            human(score.median()),
            human(exact.median()),
            human(choose.median()),
            format!("{} KiB", bytes / 1024),
            human(floor.median()),
            format!("{:.1}", whole.median() / floor.median()),
        ]);
    }

    /// Everything that numpy needs, as files.
    fn hand_over(&self, suite: &Suite) -> anyhow::Result<Value> {
        let (dim, clusters) = (self.table.transform.dim(), self.table.clusters());
        let file = |name: &str| suite.file(&format!("route-{}-{clusters}-{name}.npy", self.geometry()));
        let names = ["counts", "idf", "centroids", "loads", "cluster"].map(|name| (name, file(name)));
        let [counts, idf, centroids, loads, cluster] = names.each_ref().map(|(_, file)| file);
        let cells = self.requests.iter().flat_map(|r| r.prefill.cells().iter().copied());
        write_u32(counts, &[REQUESTS, dim], cells)?;
        write_f32(idf, &[dim], self.table.transform.idf())?;
        write_f32(centroids, &[clusters, dim], &self.table.centroids)?;
        write_f32(loads, &[REQUESTS, clusters], &self.loads.concat())?;
        let served = (0..clusters).filter_map(|worker| self.assignment.clusters_of(worker).first().copied());
        write_u32(cluster, &[clusters], served)?;
        let mut arguments = json!({"tau": TAU, "timed": TIMED, "layers": self.table.transform.geometry().layers});
        for (name, file) in &names {
            arguments[*name] = path(file);
        }
        Ok(arguments)
    }
}

/// What a router keeps from call to call.
struct Buffers {
    scratch: Scratch,
    scores: Vec<f32>,
    similarity: Vec<f32>,
    rng: Xoshiro256PlusPlus,
}

impl Buffers {
    fn new(decision: &Decision) -> Self {
        let clusters = decision.table.clusters();
        Self {
            scratch: decision.scorer.scratch(),
            scores: vec![0.0; clusters],
            similarity: vec![0.0; clusters],
            rng: Xoshiro256PlusPlus::seed_from_u64(4),
        }
    }

    fn decide(&mut self, decision: &Decision, band: &LocalityBand, request: usize) -> Option<usize> {
        let counts = &decision.requests[request].prefill;
        decision
            .scorer
            .scores_of_counts(counts, &mut self.scratch, &mut self.scores)
            .ok()?;
        decision.assignment.similarity(&self.scores, &mut self.similarity);
        let candidates = Candidates {
            loads: &decision.loads[request],
            similarity: Some(&self.similarity),
            ..Candidates::default()
        };
        band.choose(&candidates, &mut self.rng).map(|d| d.worker)
    }
}

fn compare(suite: &mut Suite, decision: &Decision, table: &mut Table) -> anyhow::Result<()> {
    let mut arguments = decision.hand_over(suite)?;
    arguments["calls"] = json!(suite.rounds(2000, 300));
    let mut peers = suite.peers()?;
    let (mut ours, mut written) = (Times::default(), Times::default());
    let mut theirs = [Times::default(), Times::default()];
    let mut buffers = Buffers::new(decision);
    let mut chosen = Value::Null;
    for _ in 0..suite.rounds(5, 2) {
        ours.add(Times::of(2000, |i| buffers.decide(decision, &decision.band, i % TIMED)));
        for ((threads, peer), times) in peers.iter_mut().zip(&mut theirs) {
            let answer = peer.call("route", &arguments)?;
            times.add(seconds(&answer)?);
            if *threads == 1 {
                written.add(peer::times(&answer, "written")?);
            }
            chosen = answer["chosen"].clone();
        }
    }
    let own = decision.plain_choices();
    let same = own
        .iter()
        .enumerate()
        .filter(|(i, worker)| chosen[*i].as_u64() == **worker)
        .count();
    let [one, two] = theirs;
    let best = one.median().min(two.median());
    let ratios = [written.median() / ours.median(), best / ours.median()];
    table.row([
        decision.geometry(),
        decision.table.clusters().to_string(),
        human(ours.median()),
        human(ours.p99()),
        human(written.median()),
        human(one.median()),
        human(two.median()),
        format!("{:.1}", ratios[0]),
        format!("{:.1}", ratios[1]),
        format!("{same} of {REQUESTS}"),
    ]);
    if decision.geometry() == "48x128" && decision.table.clusters() == 16 {
        suite.report.bar(
            "route decision, 48x128, K = 16, p50",
            "≤ 10 µs",
            human(ours.median()),
            ours.median() <= 10e-6,
        );
        for (ratio, how) in ratios
            .into_iter()
            .zip(["the formulas as written", "with as few passes as it allows"])
        {
            let what = format!("the same against numpy, {how}");
            suite.report.bar(what, "≥ 20x", format!("{ratio:.1}x"), ratio >= 20.0);
        }
    }
    Ok(())
}
