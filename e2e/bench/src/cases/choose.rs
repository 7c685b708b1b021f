//! Marginal cost: choosing a worker by the experts of its batch, and keeping the books of a request that starts and ends. Beside numpy.

use coterie_locality::{
    Candidates, Geometry, Policy as _,
    policy::{Frequencies, MarginalCost, WorkerId},
};
use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;

use crate::{
    exchange::write_f32,
    peer::{self, path, seconds},
    report::Table,
    suite::{Suite, say},
    synthetic::Traffic,
    timing::{Times, human, read_floor},
};

/// Requests that timed calls go through in turn.
const TIMED: usize = 32;
/// Requests that every worker runs.
const BATCH: usize = 16;

/// Measures all sizes.
pub(super) fn run(suite: &mut Suite) -> anyhow::Result<()> {
    let mut table = Table::new(
        "choose",
        [
            "geometry",
            "workers",
            "choose p50",
            "choose p99",
            "start and end p50",
            "bytes read",
            "read floor",
            "numpy choose, 1 thread",
            "2 threads",
            "numpy start and end",
            "numpy / ours",
        ],
    );
    let workers: &[usize] = if suite.quick { &[64] } else { &[8, 64, 256] };
    for geometry in [Geometry::new(48, 128, 8)?, Geometry::new(58, 256, 8)?] {
        for workers in workers {
            say(&format!(
                "choose {}x{} among {workers}",
                geometry.layers, geometry.experts
            ));
            Fleet::new(geometry, *workers)?.compare(suite, &mut table)?;
        }
    }
    suite.report.table(table);
    Ok(())
}

/// Workers with batches, and requests that arrive.
struct Fleet {
    geometry: Geometry,
    policy: MarginalCost,
    ids: Vec<WorkerId>,
    loads: Vec<f32>,
    requests: Vec<Frequencies>,
    /// The same frequencies, [TIMED, L x E].
    values: Vec<f32>,
}

impl Fleet {
    fn new(geometry: Geometry, workers: usize) -> anyhow::Result<Self> {
        let traffic = Traffic::new(geometry, 17);
        let mut values = Vec::new();
        let mut requests = Vec::new();
        for request in traffic.requests(2_000_000, TIMED)? {
            let frequencies = Frequencies::from_counts(&request.prefill)?;
            values.extend(frequencies.values());
            requests.push(frequencies);
        }
        let policy = MarginalCost::new(&geometry);
        let ids: Vec<WorkerId> = (0..workers as u64).map(WorkerId).collect();
        policy.workers(&ids);
        for (at, id) in ids.iter().enumerate() {
            for place in 0..BATCH {
                policy.started(*id, requests.get((at + place * 5) % TIMED), 0.0);
            }
            policy.observed(*id, BATCH as f32, 0.02);
        }
        Ok(Self {
            geometry,
            policy,
            ids,
            loads: vec![BATCH as f32; workers],
            requests,
            values,
        })
    }

    fn compare(&self, suite: &mut Suite, table: &mut Table) -> anyhow::Result<()> {
        let (layers, experts) = (self.geometry.layers, self.geometry.experts);
        let file = suite.file(&format!("choose-{layers}x{experts}-frequencies.npy"));
        write_f32(&file, &[TIMED, self.geometry.cells()], &self.values)?;
        let calls = suite.rounds(1000, 200);
        let arguments = json!({"frequencies": path(&file), "workers": self.ids.len(), "batch": BATCH, "calls": calls});
        let mut peers = suite.peers()?;
        let mut theirs = [Times::default(), Times::default()];
        let mut kept = Times::default();
        let (mut choose, mut update, mut floor) = <(Times, Times, Times)>::default();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        // Two bytes of every worker's survival, two of the request's frequency.
        let bytes = 2 * self.geometry.cells() * (self.ids.len() + 1);
        for _ in 0..suite.rounds(5, 1) {
            choose.add(Times::of(calls, |i| {
                let candidates = Candidates {
                    loads: &self.loads,
                    workers: &self.ids,
                    frequencies: self.requests.get(i % TIMED),
                    ..Candidates::default()
                };
                self.policy.choose(&candidates, &mut rng)
            }));
            update.add(Times::of(calls, |i| {
                let (id, request) = (self.ids[i % self.ids.len()], self.requests.get(i % TIMED));
                self.policy.started(id, request, 0.0);
                self.policy.finished(id, request, 0.0);
            }));
            floor.add(read_floor(bytes, calls));
            for ((_, peer), times) in peers.iter_mut().zip(&mut theirs) {
                let answer = peer.call("choose", &arguments)?;
                times.add(seconds(&answer)?);
                kept.add(peer::times(&answer, "update")?);
            }
        }
        let [one, two] = theirs;
        let ours = choose.median() + update.median();
        let best = one.median().min(two.median()) + kept.median();
        table.row([
            format!("{layers}x{experts}"),
            self.ids.len().to_string(),
            human(choose.median()),
            human(choose.p99()),
            human(update.median()),
            format!("{} KiB", bytes / 1024),
            human(floor.median()),
            human(one.median()),
            human(two.median()),
            human(kept.median()),
            format!("{:.1}", best / ours),
        ]);
        if (experts, self.ids.len()) == (128, 64) {
            suite.report.bar(
                "marginal cost: choose among 64 workers, start and end, 48x128, p50",
                "< 100 µs",
                human(ours),
                ours < 100e-6,
            );
        }
        Ok(())
    }
}
