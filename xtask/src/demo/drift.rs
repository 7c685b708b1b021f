//! Traffic that the fleet was not calibrated for: it is noticed, a run re-fits the table, the new one becomes active.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{
    Args, FLEET, NAMESPACE,
    fleet::{self, condition, newest_run, text},
    load::{self, Job},
    target::Target,
    traffic,
};
use crate::{progress::Report, wait};

/// Longest that the drift may take to be noticed and mended, in seconds.
const LIMIT: u32 = 240;

/// Sends other traffic and tells what happens until it fits a new table.
pub(super) fn show(target: &Target, args: &Args, report: &Report) -> anyhow::Result<()> {
    report.say(&format!(
        "calibrated for {}; now comes {}",
        traffic::BEFORE,
        traffic::AFTER
    ));
    let name = "load-changed";
    let job = Job {
        name,
        domains: traffic::AFTER,
        seconds: LIMIT,
        concurrency: args.concurrency,
        seed: 2,
    };
    load::start(target, &job)?;
    let result = report.step("traffic of another mix", |step| {
        let start = Instant::now();
        let mut story = Story::new(&fleet::get(target)?, &fleet::runs(target)?);
        let hint = format!(
            "see `kubectl -n {NAMESPACE} describe moe {FLEET}` and `kubectl -n {NAMESPACE} get calibrationruns`"
        );
        wait::until(
            "a table that the new traffic fits",
            Duration::from_secs(u64::from(LIMIT)),
            &hint,
            || {
                // The Job must not end first: its end would end the drift.
                load::ended(target, name)?;
                let fleet = fleet::get(target)?;
                let runs = fleet::runs(target)?;
                for line in story.tell(&fleet, &runs) {
                    step.keep(&format!("  {:>4} s  {line}", start.elapsed().as_secs()));
                }
                step.note(
                    condition(&fleet, "Drifted")
                        .map(|drifted| text(&drifted["message"]))
                        .unwrap_or_default(),
                );
                Ok(story.over(&fleet).then_some(()))
            },
        )
    });
    load::stop(target, name)?;
    result
}

/// What was told already.
struct Story {
    /// The table that was active before.
    table: Value,
    drifted: bool,
    /// The drift run last told of, and its phase; at first the one of an earlier demo.
    run: String,
    phase: String,
    told_table: bool,
    told_end: bool,
}

impl Story {
    fn new(fleet: &Value, runs: &Value) -> Self {
        let run = newest_run(runs, "Drift");
        Self {
            table: fleet["status"]["table"]["name"].clone(),
            drifted: condition(fleet, "Drifted").is_some_and(|condition| condition["status"] == "True"),
            run: run.map(|run| text(&run["metadata"]["name"])).unwrap_or_default(),
            phase: run.map(|run| text(&run["status"]["phase"])).unwrap_or_default(),
            told_table: false,
            told_end: false,
        }
    }

    /// What is new.
    fn tell(&mut self, fleet: &Value, runs: &Value) -> Vec<String> {
        let mut lines = Vec::new();
        let drifted = condition(fleet, "Drifted").filter(|condition| condition["status"] == "True");
        if let Some(condition) = drifted.filter(|_| !self.drifted) {
            self.drifted = true;
            lines.push(format!(
                "Drifted, {}: {}{}",
                text(&condition["reason"]),
                text(&condition["message"]),
                signals(fleet)
            ));
        }
        if let Some(run) = newest_run(runs, "Drift") {
            let (name, phase) = (text(&run["metadata"]["name"]), text(&run["status"]["phase"]));
            if !phase.is_empty() && (name != self.run || phase != self.phase) {
                let samples = run["status"]["report"]["samples"].as_u64();
                let samples = samples.map_or_else(String::new, |count| format!(", {count} samples of live traffic"));
                lines.push(format!("CalibrationRun {name} (reason Drift) {phase}{samples}"));
                (self.run, self.phase) = (name, phase);
            }
        }
        if self.swapped(fleet) && !self.told_table {
            self.told_table = true;
            let table = &fleet["status"]["table"];
            lines.push(format!(
                "table {} replaces {} on all routers",
                text(&table["name"]),
                text(&self.table)
            ));
        }
        if self.over(fleet) && !self.told_end {
            self.told_end = true;
            lines.push(format!("the traffic fits the new table{}", signals(fleet)));
        }
        lines
    }

    /// Whether another table is active and all routers have it.
    fn swapped(&self, fleet: &Value) -> bool {
        let propagated = condition(fleet, "TablePropagated").is_some_and(|condition| condition["status"] == "True");
        let table = &fleet["status"]["table"]["name"];
        propagated && table.is_string() && *table != self.table
    }

    /// Whether the traffic has been judged under the new table, and fits.
    fn over(&self, fleet: &Value) -> bool {
        self.swapped(fleet) && condition(fleet, "Drifted").is_some_and(|condition| condition["status"] == "False")
    }
}

/// The signals that have a value, beside their baselines.
fn signals(fleet: &Value) -> String {
    let signals = fleet["status"]["drift"]["signals"].as_array().into_iter().flatten();
    let known = signals.filter(|signal| signal["live"].is_string());
    let said: Vec<_> = known
        .map(|signal| {
            format!(
                "{} {} (baseline {})",
                text(&signal["name"]),
                text(&signal["live"]),
                text(&signal["baseline"])
            )
        })
        .collect();
    if said.is_empty() {
        String::new()
    } else {
        format!("; {}", said.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::Story;
    use serde_json::{Value, json};

    fn fleet(table: &str, drifted: &str) -> Value {
        json!({"status": {"table": {"name": table}, "conditions": [
            {"type": "Drifted", "status": drifted, "reason": "FitDropped", "message": "0.60 of 0.82"},
            {"type": "TablePropagated", "status": "True"},
        ]}})
    }

    fn runs(phase: &str) -> Value {
        json!({"items": [{"metadata": {"name": "r1", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"reason": "Drift", "deployment": "tiny-moe"}, "status": {"phase": phase}}]})
    }

    #[test]
    fn each_event_is_told_once() {
        let none = json!({"items": []});
        let mut story = Story::new(&fleet("a", "False"), &none);
        assert!(story.tell(&fleet("a", "False"), &none).is_empty());
        assert_eq!(
            story.tell(&fleet("a", "True"), &none),
            ["Drifted, FitDropped: 0.60 of 0.82"]
        );
        assert!(story.tell(&fleet("a", "True"), &none).is_empty());
        assert_eq!(story.tell(&fleet("a", "True"), &runs("Running")).len(), 1);
        assert!(story.tell(&fleet("a", "True"), &runs("Running")).is_empty() && !story.over(&fleet("a", "True")));
        let end = story.tell(&fleet("b", "False"), &runs("Succeeded"));
        assert_eq!(
            end[1..],
            ["table b replaces a on all routers", "the traffic fits the new table"]
        );
        assert!(
            Story::new(&fleet("b", "False"), &runs("Succeeded"))
                .tell(&fleet("b", "False"), &runs("Succeeded"))
                .is_empty()
        );
        assert!(story.over(&fleet("b", "False")) && story.tell(&fleet("b", "False"), &runs("Succeeded")).is_empty());
    }
}
