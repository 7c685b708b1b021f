//! Two measured loads side by side.

use super::outcome::{Outcome, Worker};

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
        text.push(format!(
            "{:<10}{} | {}",
            format!("decode-{index}"),
            cells(left.1),
            cells(right.1)
        ));
    }
    let total = |outcome: &Outcome| row(|(_, width, read)| format!("{:>width$}", read(&outcome.total())));
    text.push(format!("{:<10}{} | {}\n", "all", total(left.1), total(right.1)));
    text.push(summary(left.1, right.1));
    for (name, outcome) in [left, right] {
        text.extend(
            outcome
                .warnings()
                .into_iter()
                .map(|warning| format!("{name}: {warning}")),
        );
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
        "distinct experts per step {}, TPOT p50 {}, p99 {}\n\
         TTFT p50/p99: {:.0}/{:.0} ms, then {:.0}/{:.0} ms; failed requests: {} of {}, then {} of {}",
        change(left.total().experts, right.total().experts),
        change(left.tpot.p50, right.tpot.p50),
        change(left.tpot.p99, right.tpot.p99),
        left.ttft.p50,
        left.ttft.p99,
        right.ttft.p50,
        right.ttft.p99,
        left.failed,
        left.requests,
        right.failed,
        right.requests,
    )
}

#[cfg(test)]
mod tests {
    use super::side_by_side;
    use crate::demo::outcome::Outcome;
    use serde_json::json;

    #[test]
    fn loads_stand_side_by_side() {
        let load = |experts: f64, overrun: u64| {
            let state = json!({"steps": 100, "mean_batch": 25.0, "mean_distinct_experts": experts, "overrun_steps": overrun,
                "step_ms": {"p50": 24.0, "p99": 30.0}, "requests": {"finished": 50}});
            let result = json!({"ok": 100, "failed": 1, "tpot_ms": {"p50": experts / 10.0, "p99": 30.0}, "ttft_ms": {"p50": 9.0, "p99": 20.0},
                "workers": [{"worker": "http://a", "state": state}, {"worker": "http://b", "state": state}]});
            Outcome::read(&result).unwrap()
        };
        let text = side_by_side(("LeastLoaded", &load(250.0, 0)), ("LocalityBand", &load(200.0, 5)));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[2],
            "decode-0          50    25.0         250.0      24.0    30.0        0 |         50    25.0         200.0      24.0    30.0        5"
        );
        assert!(
            lines[4].starts_with("all              100    25.0         250.0      25.0"),
            "{text}"
        );
        assert!(
            text.contains("distinct experts per step -20.0 %, TPOT p50 -20.0 %, p99 +0.0 %"),
            "{text}"
        );
        assert!(
            text.contains("1 of 101") && text.contains("LocalityBand: INVALID: 5.0 % of the steps"),
            "{text}"
        );
        assert!(!text.contains("LeastLoaded: INVALID"));
    }
}
