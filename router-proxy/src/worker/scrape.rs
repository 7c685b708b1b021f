//! Asks every decode worker for its load, all at once and on a fixed schedule.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::{Role, Worker};
use crate::core::Core;

const METRICS_PATH: &str = "/metrics";
const MAX_METRICS_BYTES: usize = 4 << 20;
const PARALLEL: usize = 64;
const RUNNING: &str = "vllm:num_requests_running";
const WAITING: &str = "vllm:num_requests_waiting";

/// Scrapes until `stop`. A scrape must end within its interval, so that a worker that hangs cannot hold the others' reports up.
pub(crate) async fn run(core: Arc<Core>, every: Duration, stop: CancellationToken) {
    let mut ticks = interval_at(Instant::now(), every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        let view = core.routing.view();
        let workers = view.workers(Role::Decode);
        stream::iter(workers)
            .for_each_concurrent(PARALLEL, |worker| scrape(&core, worker, every))
            .await;
    }
}

async fn scrape(core: &Core, worker: Arc<Worker>, within: Duration) {
    let before = worker.dispatched();
    let page = core
        .upstream
        .get(&worker.address, METRICS_PATH, MAX_METRICS_BYTES, within);
    let result = match page.await {
        Ok(page) => match requests(&page) {
            Some(requests) => {
                worker.reported(requests, before, worker.dispatched(), core.clock.monotonic_ms());
                "ok"
            }
            None => "unreadable",
        },
        Err(error) => {
            tracing::debug!(worker = worker.name, %error, "load of the worker is unknown");
            "failed"
        }
    };
    core.metrics.scraped(result);
}

/// Requests running and waiting, added over the page's engines; `None` when the page does not say.
fn requests(page: &[u8]) -> Option<u64> {
    let page = std::str::from_utf8(page).ok()?;
    let (mut sum, mut running) = (0.0, false);
    for line in page.lines() {
        let value = sample(line, RUNNING).inspect(|_| running = true);
        let Some(value) = value.or_else(|| sample(line, WAITING)) else {
            continue;
        };
        let value: f64 = value.parse().ok()?;
        if !(0.0..1e9).contains(&value) {
            return None;
        }
        sum += value;
    }
    running.then_some(sum as u64)
}

/// The value of a line `name{labels} value` or `name value`.
fn sample<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(name)?;
    let values = match rest.strip_prefix('{') {
        // Label values may contain braces; numbers never do.
        Some(labels) => labels.rsplit_once('}')?.1,
        None => rest.strip_prefix(' ')?,
    };
    values.split_ascii_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_running_and_waiting_over_engines_and_nothing_else() {
        let page = b"# HELP vllm:num_requests_running Number.\nvllm:num_requests_running{engine=\"0\",model_name=\"a}b\"} 3.0\n\
            vllm:num_requests_running{engine=\"1\"} 2.0 1700000\nvllm:num_requests_waiting{engine=\"0\"} 4.0\n\
            vllm:num_requests_waiting_by_reason{reason=\"capacity\"} 100.0\n";
        assert_eq!(requests(page), Some(9));
    }

    #[test]
    fn pages_that_do_not_say_are_refused() {
        assert_eq!(requests(b""), None);
        assert_eq!(requests(b"vllm:num_requests_waiting 3\n"), None);
        assert_eq!(requests(b"vllm:num_requests_running NaN\n"), None);
        assert_eq!(requests(b"vllm:num_requests_running -1\n"), None);
        assert_eq!(requests(b"vllm:num_requests_running\xff 1\n"), None);
    }
}
