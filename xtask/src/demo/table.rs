//! Two measured loads side by side.

use anyhow::Context as _;
use serde_json::Value;

/// Above this share of overrun steps the machine was too slow for the figures to mean anything.
const MOST_OVERRUN: f64 = 0.01;

/// What a load measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    workers: Vec<Worker>,
    requests: u64,
    failed: u64,
    /// Milliseconds.
    tpot_p50: f64,
    tpot_p99: f64,
    ttft_p50: f64,
    ttft_p99: f64,
}

#[derive(Clone, Debug, PartialEq)]
struct Worker {
    name: String,
    requests: u64,
    batch: f64,
    experts: f64,
    tpot_p50: f64,
    tpot_p99: f64,
    steps: u64,
    overrun: u64,
}

/// A column: its headline, width, and how it is read from a worker.
type Column = (&'static str, usize, fn(&Worker) -> String);

const COLUMNS: [Column; 6] = [
    ("requests", 8, |worker| worker.requests.to_string()),
    ("batch", 6, |worker| format!("{:.1}", worker.batch)),
    ("experts/step", 12, |worker| format!("{:.1}", worker.experts)),
    ("TPOT p50", 8, |worker| format!("{:.1}", worker.tpot_p50)),
    ("p99 ms", 6, |worker| format!("{:.1}", worker.tpot_p99)),
    ("overrun", 7, |worker| worker.overrun.to_string()),
];

/// The two loads, a worker a line.
pub(super) fn side_by_side(left: (&str, &Outcome), right: (&str, &Outcome)) -> String {
    let width: usize = COLUMNS.iter().map(|(_, width, _)| width + 2).sum();
    let mut text = vec![format!("{:<10}{:^width$} | {:^width$}", "", left.0, right.0)];
    let heads = row(|(head, width, _)| format!("{head:>width$}"));
    text.push(format!("{:<10}{heads} | {heads}", "worker"));
    let lines = left.1.workers.len().max(right.1.workers.len());
    for index in 0..lines {
        let cells = |outcome: &Outcome| match outcome.workers.get(index) {
            Some(worker) => row(|(_, width, read)| format!("{:>width$}", read(worker))),
            None => " ".repeat(width),
        };
        let name = left
            .1
            .workers
            .get(index)
            .or(right.1.workers.get(index))
            .map_or("", |worker| &worker.name);
        text.push(format!("{name:<10}{} | {}", cells(left.1), cells(right.1)));
    }
    let total = |outcome: &Outcome| row(|(_, width, read)| format!("{:>width$}", read(&outcome.total())));
    text.push(format!("{:<10}{} | {}\n", "all", total(left.1), total(right.1)));
    text.push(summary(left.1, right.1));
    for (name, outcome) in [left, right] {
        if let Some(warning) = outcome.warning() {
            text.push(format!("{name}: {warning}"));
        }
    }
    text.join("\n")
}

fn row(cell: impl Fn(&Column) -> String) -> String {
    COLUMNS
        .iter()
        .map(|column| format!("  {}", cell(column)))
        .collect::<Vec<_>>()
        .concat()
}

fn summary(left: &Outcome, right: &Outcome) -> String {
    let change = |before: f64, after: f64| {
        if before > 0.0 {
            format!("{:+.1} %", (after / before - 1.0) * 100.0)
        } else {
            "-".to_owned()
        }
    };
    format!(
        "distinct experts per step {}, TPOT p50 {}, p99 {}\nTTFT p50/p99: {:.0}/{:.0} ms and {:.0}/{:.0} ms; failed requests: {} of {} and {} of {}",
        change(left.total().experts, right.total().experts),
        change(left.tpot_p50, right.tpot_p50),
        change(left.tpot_p99, right.tpot_p99),
        left.ttft_p50,
        left.ttft_p99,
        right.ttft_p50,
        right.ttft_p99,
        left.failed,
        left.requests,
        right.failed,
        right.requests,
    )
}

impl Outcome {
    /// Reads what the load generator printed: its last line is the result.
    pub(super) fn of_output(text: &str) -> anyhow::Result<Self> {
        let line = text
            .trim_end()
            .lines()
            .next_back()
            .context("the load generator printed nothing")?;
        Self::read(&serde_json::from_str(line).context("the load generator's last line is not JSON")?)
    }

    /// Reads the load generator's result.
    pub(super) fn read(_result: &Value) -> anyhow::Result<Self> {
        None.context("not written yet")
    }

    /// All workers as one; means are over steps.
    fn total(&self) -> Worker {
        let steps: u64 = self.workers.iter().map(|worker| worker.steps).sum();
        let mean = |read: fn(&Worker) -> f64| {
            let sum: f64 = self
                .workers
                .iter()
                .map(|worker| read(worker) * worker.steps as f64)
                .sum();
            if steps == 0 { 0.0 } else { sum / steps as f64 }
        };
        Worker {
            name: "all".to_owned(),
            requests: self.workers.iter().map(|worker| worker.requests).sum(),
            batch: mean(|worker| worker.batch),
            experts: mean(|worker| worker.experts),
            tpot_p50: self.tpot_p50,
            tpot_p99: self.tpot_p99,
            steps,
            overrun: self.workers.iter().map(|worker| worker.overrun).sum(),
        }
    }

    /// Why the figures mean nothing, if so.
    fn warning(&self) -> Option<String> {
        let total = self.total();
        let share = total.overrun as f64 / total.steps.max(1) as f64;
        (share > MOST_OVERRUN).then(|| {
            format!(
                "INVALID: {:.1} % of the steps took longer than the GPU they stand for; this machine is too slow or too busy, try --concurrency 40",
                share * 100.0
            )
        })
    }
}
