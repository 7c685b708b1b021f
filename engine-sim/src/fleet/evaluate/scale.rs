//! Scale: what a decision costs and what state it needs, by fleet size.

use std::fmt::Write;
use std::time::Instant;

use anyhow::Result;
use coterie_locality::Geometry;
use coterie_locality::policy::{Candidates, Frequencies, LeastLoaded, LocalityBand, MarginalCost, Policy, WorkerId};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Document, Evaluation};

const DECISIONS: usize = 300;

impl Evaluation {
    #[allow(clippy::unused_self)]
    pub(super) fn scale(&self, document: &mut Document) -> Result<()> {
        let geometry = Geometry::new(48, 128, 8)?;
        let mut out = String::from(
            "| decode workers | LeastLoaded, us | LocalityBand after scoring, us | MarginalCost, us | MarginalCost start + finish, us | MarginalCost state, MiB | centroids (f32), MiB | exchange of unions per router and second, MB |\n|---|---|---|---|---|---|---|---|\n",
        );
        for workers in [10usize, 100, 1000] {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
            let requests: Vec<Frequencies> = (0..16)
                .map(|_| {
                    let values: Vec<f32> = (0..geometry.cells()).map(|_| rng.r#gen::<f32>().powi(4)).collect();
                    Frequencies::new(&geometry, &values)
                })
                .collect::<Result<_, _>>()?;
            let ids: Vec<WorkerId> = (0..workers as u64).map(WorkerId).collect();
            let loads = vec![4.0f32; workers];
            let similarity: Vec<f32> = (0..workers).map(|_| rng.r#gen::<f32>()).collect();
            let marginal = MarginalCost::new(&geometry);
            marginal.workers(&ids);
            for (i, id) in ids.iter().enumerate() {
                (0..4).for_each(|j| marginal.started(*id, requests.get((i + j) % 16), 0.0));
                marginal.observed(*id, 4.0, 0.02);
            }
            let mut time = |policy: &dyn Policy| {
                let begun = Instant::now();
                for i in 0..DECISIONS {
                    let candidates = Candidates {
                        loads: &loads,
                        similarity: Some(&similarity),
                        workers: &ids,
                        frequencies: requests.get(i % 16),
                        ..Candidates::default()
                    };
                    std::hint::black_box(policy.choose(&candidates, &mut rng));
                }
                begun.elapsed().as_secs_f64() * 1e6 / DECISIONS as f64
            };
            let (least, band, cost) = (
                time(&LeastLoaded),
                time(&LocalityBand::new(0.1, 1, Some(1.5))?),
                time(&marginal),
            );
            let begun = Instant::now();
            for i in 0..DECISIONS {
                marginal.started(ids[i % workers], requests.get(i % 16), 0.0);
                marginal.finished(ids[i % workers], requests.get(i % 16), 0.0);
            }
            let update = begun.elapsed().as_secs_f64() * 1e6 / DECISIONS as f64;
            let mib = |bytes: usize| (bytes * workers) as f64 / f64::from(1 << 20);
            let cells = geometry.cells();
            let _ = writeln!(
                out,
                "| {workers} | {least:.1} | {band:.1} | {cost:.0} | {update:.1} | {:.1} | {:.1} | {:.1} |",
                mib(cells * 4),
                mib(cells * 4),
                (cells * workers * 10) as f64 / 1e6
            );
        }
        document.table("scale", out);
        Ok(())
    }
}
