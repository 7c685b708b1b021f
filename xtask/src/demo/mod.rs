//! `cargo xtask demo`: a fleet declared, calibrated, routed, seen to drift and calibrated again.

mod answers;
mod drift;
mod farewell;
mod fleet;
mod http;
mod load;
mod outcome;
mod plain;
mod reach;
mod table;
mod target;
mod traffic;

use std::time::Instant;

use crate::{
    doctor,
    paths::Paths,
    progress::{Report, seconds},
};

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show routing and calibration with plain processes: no cluster, no root.
    #[arg(long, conflicts_with_all = ["context", "registry"])]
    no_cluster: bool,
    /// Use the cluster of this kubectl context instead of the local one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Registry that the cluster of --context can pull from, as HOST:PORT/PATH. A kind cluster needs none.
    #[arg(long, requires = "context")]
    registry: Option<String>,
    /// Install missing Debian packages without asking.
    #[arg(long)]
    yes: bool,
    /// Length of each measured load, in seconds. Default: 30, and 8 with --no-cluster.
    #[arg(long, value_parser = clap::value_parser!(u32).range(5..=3600))]
    seconds: Option<u32>,
    /// Requests at a time over the whole fleet; four decode workers share them.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=2000))]
    concurrency: u32,
}

impl Args {
    /// Length of each measured load. Plain processes start without a warm cluster around them and show the same in less time.
    fn load_seconds(&self) -> u32 {
        self.seconds.unwrap_or(if self.no_cluster { 8 } else { 30 })
    }
}

/// Namespace of the demo's fleet.
pub(crate) const NAMESPACE: &str = "coterie-demo";
/// Name of the demo's fleet, as `examples/tiny-moe.yaml` has it.
pub(crate) const FLEET: &str = "tiny-moe";

/// Runs the demo.
pub(crate) fn run(args: &Args, paths: &Paths, report: &Report) -> anyhow::Result<()> {
    let start = Instant::now();
    if args.no_cluster {
        doctor::require(doctor::Need::Images, args.yes, report)?;
        return plain::run(args, paths, report);
    }
    let need = if args.context.is_some() {
        doctor::Need::Images
    } else {
        doctor::Need::Cluster
    };
    doctor::require(need, args.yes, report)?;

    report.head("cluster and images");
    let target = target::prepare(args, paths, report)?;
    report.head("a fleet is declared");
    fleet::install(&target, paths, report)?;
    fleet::declare(&target, paths, report)?;
    fleet::wait(&target, report)?;
    let router = reach::router(&target)?;
    report.head("answers");
    answers::show(&router, report)?;
    report.head("the same load, routed twice");
    let before = load::measure(&target, args, "LeastLoaded", report)?;
    let after = load::measure(&target, args, "LocalityBand", report)?;
    println!(
        "\n{}",
        table::side_by_side(("LeastLoaded", &before), ("LocalityBand", &after))
    );
    report.head("the traffic changes");
    drift::show(&target, args, report)?;
    farewell::print(&target, &router);
    report.say(&format!("\nthe whole demo took {}", seconds(start.elapsed())));
    Ok(())
}
