//! What a load measured: the load generator's result, read.

use anyhow::Context as _;
use serde_json::Value;

/// Above this share of overrun steps the machine was too slow for the figures to mean anything.
const MOST_OVERRUN: f64 = 0.01;

/// A measured load.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Decode workers, in the order in which they were named to the load generator.
    pub(super) workers: Vec<Worker>,
    pub(super) requests: u64,
    pub(super) failed: u64,
    /// Why the first failed ones failed.
    errors: Vec<String>,
    /// Time per output token after the first, per request.
    pub(super) tpot: Quantiles,
    /// Time to the first token.
    pub(super) ttft: Quantiles,
}

/// Milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quantiles {
    pub(super) p50: f64,
    pub(super) p99: f64,
}

/// What a decode worker measured. Its TPOT is that of its steps: each gives one token to every request in the batch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Worker {
    pub(super) requests: u64,
    pub(super) batch: f64,
    pub(super) experts: f64,
    pub(super) tpot_p50: f64,
    pub(super) tpot_p99: f64,
    pub(super) steps: u64,
    pub(super) overrun: u64,
}

impl Outcome {
    /// Reads what the load generator printed: its last line is the result.
    pub(super) fn of_output(text: &str) -> anyhow::Result<Self> {
        let line = text
            .trim_end()
            .lines()
            .next_back()
            .context("the load generator printed nothing")?;
        let result = serde_json::from_str(line).context("the load generator's last line is not JSON")?;
        Self::read(&result)
    }

    /// Reads the load generator's result.
    pub(super) fn read(result: &Value) -> anyhow::Result<Self> {
        let (ok, failed) = (count(&result["ok"])?, count(&result["failed"])?);
        let errors = result["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let workers = result["workers"]
            .as_array()
            .context("the load generator's result has no workers")?;
        Ok(Self {
            workers: workers.iter().map(Worker::read).collect::<anyhow::Result<_>>()?,
            requests: ok + failed,
            failed,
            errors: errors.map(str::to_owned).collect(),
            tpot: Quantiles::read(&result["tpot_ms"]),
            ttft: Quantiles::read(&result["ttft_ms"]),
        })
    }

    /// All workers as one; means are over steps, and TPOT is the clients'.
    pub(super) fn total(&self) -> Worker {
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
            requests: self.workers.iter().map(|worker| worker.requests).sum(),
            batch: mean(|worker| worker.batch),
            experts: mean(|worker| worker.experts),
            tpot_p50: self.tpot.p50,
            tpot_p99: self.tpot.p99,
            steps,
            overrun: self.workers.iter().map(|worker| worker.overrun).sum(),
        }
    }

    /// Why the figures may mean nothing.
    pub(super) fn warnings(&self) -> Vec<String> {
        let total = self.total();
        let share = total.overrun as f64 / total.steps.max(1) as f64;
        let mut warnings: Vec<_> = self
            .errors
            .iter()
            .map(|error| format!("a request failed: {error}"))
            .collect();
        if share > MOST_OVERRUN {
            warnings.push(format!(
                "INVALID: {:.1} % of the steps took longer than on the GPU they stand for. This machine is too slow or too busy: try --concurrency 40",
                share * 100.0
            ));
        }
        warnings
    }
}

impl Worker {
    fn read(report: &Value) -> anyhow::Result<Self> {
        let state = &report["state"];
        let said = |what: &str| format!("worker {}: no {what} ({})", report["worker"], report["error"]);
        let number = |value: &Value, what: &str| value.as_f64().with_context(|| said(what));
        let quantiles = Quantiles::read(&state["step_ms"]);
        Ok(Self {
            requests: count(&state["requests"]["finished"]).with_context(|| said("requests"))?,
            batch: number(&state["mean_batch"], "batch")?,
            experts: number(&state["mean_distinct_experts"], "experts")?,
            tpot_p50: quantiles.p50,
            tpot_p99: quantiles.p99,
            steps: count(&state["steps"]).with_context(|| said("steps"))?,
            overrun: count(&state["overrun_steps"]).with_context(|| said("overrun steps"))?,
        })
    }
}

impl Quantiles {
    /// Zero where nothing was measured.
    fn read(value: &Value) -> Self {
        let read = |name: &str| value[name].as_f64().unwrap_or_default();
        Self {
            p50: read("p50"),
            p99: read("p99"),
        }
    }
}

fn count(value: &Value) -> anyhow::Result<u64> {
    value.as_u64().context("the load generator's result lacks a count")
}

#[cfg(test)]
mod tests {
    use super::Outcome;
    use serde_json::json;

    #[test]
    fn a_silent_worker_is_named() {
        let result =
            json!({"ok": 1, "failed": 0, "workers": [{"worker": "http://w:8000", "state": null, "error": "refused"}]});
        let error = format!("{:#}", Outcome::read(&result).unwrap_err());
        assert!(error.contains("http://w:8000") && error.contains("refused"), "{error}");
    }

    #[test]
    fn only_the_last_line_counts() {
        assert!(
            Outcome::of_output("progress\n{\"ok\": 1, \"failed\": 2, \"workers\": []}\n")
                .unwrap()
                .failed
                == 2
        );
        assert!(Outcome::of_output("").is_err());
    }
}
