//! Everything a change must pass, in phases.

mod chart;
mod code;
mod directions;
mod e2e;

use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::{
    background::Background,
    doctor, gen_files,
    paths::Paths,
    progress::{Report, seconds},
};

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leave out what needs the local cluster, and root.
    #[arg(long)]
    no_cluster: bool,
    /// Run these phases only: fmt, directions, clippy, doc, unit, gen, chart, e2e.
    #[arg(long, value_name = "PHASE", value_delimiter = ',')]
    only: Vec<String>,
    /// Leave the cluster up at the end.
    #[arg(long)]
    keep_cluster: bool,
    /// Install missing Debian packages without asking.
    #[arg(long)]
    yes: bool,
    /// Handed to the test programs of the phases unit and e2e, as the name of a test.
    #[arg(last = true)]
    rest: Vec<String>,
}

/// What a phase works with.
struct Run<'a> {
    args: &'a Args,
    paths: &'a Paths,
    report: &'a Report,
    tools: Option<Background>,
    images: Option<Background>,
}

struct Phase {
    name: &'static str,
    /// Needs the commands of the local cluster.
    tools: bool,
    run: fn(&mut Run<'_>) -> anyhow::Result<()>,
}

/// The name of the phase that needs the cluster and the images.
const E2E: &str = "e2e";

/// All phases: what fails fast comes first, and what needs the background's results last.
const PHASES: [Phase; 8] = [
    Phase {
        name: "fmt",
        tools: false,
        run: code::fmt,
    },
    Phase {
        name: "directions",
        tools: false,
        run: |run| directions::check(run.paths),
    },
    Phase {
        name: "clippy",
        tools: false,
        run: code::clippy,
    },
    Phase {
        name: "doc",
        tools: false,
        run: code::doc,
    },
    Phase {
        name: "unit",
        tools: false,
        run: code::unit,
    },
    Phase {
        name: "gen",
        tools: false,
        run: |run| gen_files::check(run.paths, run.report),
    },
    Phase {
        name: "chart",
        tools: true,
        run: chart::check,
    },
    Phase {
        name: E2E,
        tools: true,
        run: e2e::run,
    },
];

/// Runs what is quick.
pub(crate) fn quick(paths: &Paths, report: &Report) -> anyhow::Result<()> {
    let only = ["fmt", "directions", "clippy", "gen"].map(str::to_owned).to_vec();
    run(
        &Args {
            only,
            no_cluster: true,
            keep_cluster: false,
            yes: false,
            rest: Vec::new(),
        },
        paths,
        report,
    )
}

/// Runs the command.
pub(crate) fn run(args: &Args, paths: &Paths, report: &Report) -> anyhow::Result<()> {
    let phases = chosen(args)?;
    let cluster = phases.iter().any(|phase| phase.name == E2E);
    doctor::require(
        if cluster {
            doctor::Need::Cluster
        } else {
            doctor::Need::Images
        },
        args.yes,
        report,
    )?;
    let start = Instant::now();
    let mut run = Run {
        args,
        paths,
        report,
        tools: None,
        images: None,
    };
    if phases.iter().any(|phase| phase.tools) {
        run.tools = Some(Background::start(paths, "build the cluster's commands", &["tools"])?);
    }
    if cluster {
        run.images = Some(Background::start(paths, "build the images", &["images"])?);
    }
    let mut times = Vec::new();
    for phase in phases {
        report.head(phase.name);
        let began = Instant::now();
        (phase.run)(&mut run)
            .with_context(|| format!("phase {} (again: cargo xtask test --only {})", phase.name, phase.name))?;
        times.push(format!("{} {}", phase.name, seconds(began.elapsed())));
    }
    report.head("passed");
    report.say(&format!("{}: {}", seconds(start.elapsed()), times.join(", ")));
    Ok(())
}

fn chosen(args: &Args) -> anyhow::Result<Vec<&'static Phase>> {
    if let Some(unknown) = args
        .only
        .iter()
        .find(|name| PHASES.iter().all(|phase| phase.name != **name))
    {
        let names: Vec<_> = PHASES.iter().map(|phase| phase.name).collect();
        bail!("no phase {unknown}: one of {}", names.join(", "));
    }
    let wanted = |phase: &&Phase| args.only.is_empty() || args.only.iter().any(|name| name == phase.name);
    Ok(PHASES
        .iter()
        .filter(wanted)
        .filter(|phase| !(args.no_cluster && phase.name == E2E))
        .collect())
}

impl Run<'_> {
    /// Waits for the cluster's commands.
    fn wait_for_tools(&mut self) -> anyhow::Result<()> {
        self.tools.take().map_or(Ok(()), |tools| tools.wait(self.report))
    }

    /// Waits for the images.
    fn wait_for_images(&mut self) -> anyhow::Result<()> {
        self.images.take().map_or(Ok(()), |images| images.wait(self.report))
    }
}

#[cfg(test)]
mod tests {
    use super::{Args, chosen};

    fn names(no_cluster: bool, only: &[&str]) -> anyhow::Result<Vec<&'static str>> {
        let only = only.iter().map(|name| (*name).to_owned()).collect();
        let args = Args {
            no_cluster,
            only,
            keep_cluster: false,
            yes: false,
            rest: Vec::new(),
        };
        Ok(chosen(&args)?.iter().map(|phase| phase.name).collect())
    }

    #[test]
    fn phases_can_be_chosen() {
        assert_eq!(names(false, &[]).unwrap().last(), Some(&"e2e"));
        assert!(!names(true, &[]).unwrap().contains(&"e2e"));
        assert_eq!(names(false, &["unit", "fmt"]).unwrap(), ["fmt", "unit"]);
        assert!(
            names(false, &["units"])
                .unwrap_err()
                .to_string()
                .contains("no phase units")
        );
    }
}
