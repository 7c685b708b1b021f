//! The whole fit: how long, how it grows with samples, layers, experts and clusters, and how much memory it takes.

use std::process::Command;

use anyhow::Context as _;
use coterie_locality::{FitOptions, Geometry, fit};
use serde_json::{Value, json};

use crate::{
    environment,
    peer::seconds,
    report::Table,
    suite::{Suite, say},
    synthetic::Traffic,
    timing::{Times, exponent, human, on_threads},
};

/// One fit, measured in a process of its own.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct MeasureArgs {
    #[arg(long)]
    layers: usize,
    #[arg(long)]
    experts: usize,
    #[arg(long)]
    clusters: usize,
    #[arg(long)]
    samples: usize,
    #[arg(long)]
    threads: usize,
    #[arg(long)]
    repeat: usize,
}

/// Runs one fit and prints what it took as JSON.
pub(crate) fn measure(args: &MeasureArgs) -> anyhow::Result<()> {
    let geometry = Geometry::new(args.layers, args.experts, 8)?;
    let samples = Traffic::new(geometry, 51).samples(args.samples)?;
    let before = environment::memory().context("no /proc/self/status")?;
    let options = FitOptions {
        predictors: None,
        clusters: args.clusters,
        ..FitOptions::default()
    };
    let mut report = None;
    let used = environment::processor_seconds();
    let times = on_threads(args.threads, || {
        Times::of(args.repeat, |_| {
            report = Some(fit(&samples, &options, None).map(|(_, report)| report));
        })
    })?;
    let processor = environment::processor_seconds()
        .zip(used)
        .map(|(now, then)| (now - then) / args.repeat as f64);
    let report = report.context("no fit was asked for")??;
    let after = environment::memory().context("no /proc/self/status")?;
    println!(
        "{}",
        json!({"seconds": times, "processor": processor, "before": before.0, "peak": after.1, "layers": report.layers.len(), "rho": report.rho})
    );
    Ok(())
}

fn measured(args: &MeasureArgs) -> anyhow::Result<Value> {
    say(&format!(
        "fit {} samples {}x{} K={} threads={}",
        args.samples, args.layers, args.experts, args.clusters, args.threads
    ));
    let numbers = [
        ("--layers", args.layers),
        ("--experts", args.experts),
        ("--clusters", args.clusters),
        ("--samples", args.samples),
        ("--threads", args.threads),
        ("--repeat", args.repeat),
    ];
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("measure-fit");
    for (name, value) in numbers {
        command.arg(name).arg(value.to_string());
    }
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    anyhow::ensure!(output.status.success(), "the fit ended with {}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// One point of a grid and its times.
struct Point {
    args: MeasureArgs,
    seconds: f64,
    processor: f64,
}

/// Measures the grid of a usual calibration.
pub(super) fn run(suite: &mut Suite) -> anyhow::Result<()> {
    grid(suite, "fit", if suite.quick { 300 } else { 1000 })?;
    threads(suite)
}

/// Measures the grid of ten times as many samples, and how cost grows with their number.
pub(super) fn run_large(suite: &mut Suite) -> anyhow::Result<()> {
    let sizes: &[usize] = if suite.quick {
        &[200, 400]
    } else {
        &[1000, 2000, 5000, 10_000]
    };
    let mut table = new_table("fit-large/samples");
    let mut points = Vec::new();
    for samples in sizes.iter().copied() {
        points.push(measure_into(&mut table, [samples, 48, 128, 16], 1)?);
    }
    suite.report.table(table);
    suite.report.table(growth(
        "fit-large/growth-samples",
        &points,
        &[("samples N", |a| a.samples)],
    ));
    if !suite.quick {
        grid(suite, "fit-large", 10_000)?;
    }
    Ok(())
}

fn new_table(name: &str) -> Table {
    Table::new(
        name,
        [
            "N",
            "geometry",
            "K",
            "time",
            "processor time",
            "samples in memory",
            "peak beyond them",
            "layers kept",
            "rho",
        ],
    )
}

fn grid(suite: &mut Suite, name: &str, samples: usize) -> anyhow::Result<()> {
    let mut table = new_table(name);
    let [clusters, shapes]: [&[usize]; 2] = if suite.quick {
        [&[8, 16], &[48]]
    } else {
        [&[8, 16, 64], &[48, 58]]
    };
    let mut points = Vec::new();
    for (layers, experts) in shapes.iter().flat_map(|l| [(*l, 128), (*l, 256)]) {
        for k in clusters.iter().copied() {
            let repeat = if samples <= 1000 { suite.rounds(3, 1) } else { 1 };
            let point = measure_into(&mut table, [samples, layers, experts, k], repeat)?;
            bars(suite, &point);
            points.push(point);
        }
    }
    suite.report.table(table);
    let sizes: [(&str, Size); 3] = [
        ("layers L", |a| a.layers),
        ("experts E", |a| a.experts),
        ("clusters K", |a| a.clusters),
    ];
    suite.report.table(growth(&format!("{name}/growth"), &points, &sizes));
    Ok(())
}

fn measure_into(
    table: &mut Table,
    [samples, layers, experts, clusters]: [usize; 4],
    repeat: usize,
) -> anyhow::Result<Point> {
    let args = MeasureArgs {
        layers,
        experts,
        clusters,
        samples,
        threads: 2,
        repeat,
    };
    let answer = measured(&args)?;
    let point = Point {
        args,
        seconds: seconds(&answer)?.median(),
        processor: answer["processor"].as_f64().unwrap_or(f64::NAN),
    };
    table.row(row(&point, &answer));
    Ok(point)
}

fn row(point: &Point, answer: &Value) -> [String; 9] {
    let (args, bytes) = (&point.args, |name: &str| answer[name].as_f64().unwrap_or(f64::NAN));
    let mib = |value: f64| format!("{:.0} MiB", value / f64::from(1 << 20));
    [
        args.samples.to_string(),
        format!("{}x{}", args.layers, args.experts),
        args.clusters.to_string(),
        human(point.seconds),
        human(point.processor),
        mib(bytes("before")),
        mib(bytes("peak") - bytes("before")),
        answer["layers"].to_string(),
        format!("{:.3}", answer["rho"].as_f64().unwrap_or(f64::NAN)),
    ]
}

fn bars(suite: &mut Suite, point: &Point) {
    let args = &point.args;
    if (args.layers, args.experts, args.clusters) != (48, 128, 16) {
        return;
    }
    let limit = match args.samples {
        1000 => 1.0,
        10_000 => 10.0,
        _ => return,
    };
    suite.report.bar(
        format!(
            "fit of {} samples, 48x128, K = 16, without predictors, 2 threads",
            args.samples
        ),
        format!("< {limit} s"),
        format!(
            "{} ({} of processor time)",
            human(point.seconds),
            human(point.processor)
        ),
        point.seconds < limit,
    );
}

type Size = fn(&MeasureArgs) -> usize;

/// The powers of sizes that processor time grows with. A grid is complete, so each can be fitted by itself.
fn growth(name: &str, points: &[Point], sizes: &[(&str, Size)]) -> Table {
    let mut table = Table::new(name, ["processor time grows with", "as its power"]);
    for (what, size) in sizes {
        let pairs: Vec<(f64, f64)> = points.iter().map(|p| (size(&p.args) as f64, p.processor)).collect();
        let power = exponent(&pairs).map_or_else(|| "-".to_owned(), |power| format!("{power:.2}"));
        table.row([(*what).to_owned(), power]);
    }
    table
}

/// What the second thread brings.
fn threads(suite: &mut Suite) -> anyhow::Result<()> {
    let mut table = Table::new(
        "fit/threads",
        [
            "N",
            "geometry",
            "K",
            "1 thread (processor time)",
            "2 threads (processor time)",
        ],
    );
    let samples = suite.rounds(1000, 300);
    let times = [1, 2].map(|threads| {
        let args = MeasureArgs {
            layers: 48,
            experts: 128,
            clusters: 16,
            samples,
            threads,
            repeat: suite.rounds(5, 1),
        };
        let used = |answer: &Value| answer["processor"].as_f64().unwrap_or(f64::NAN);
        measured(&args).and_then(|answer| {
            Ok(format!(
                "{} ({})",
                human(seconds(&answer)?.median()),
                human(used(&answer))
            ))
        })
    });
    let [one, two] = times;
    table.row([samples.to_string(), "48x128".to_owned(), "16".to_owned(), one?, two?]);
    suite.report.table(table);
    Ok(())
}
