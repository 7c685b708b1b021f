//! `/metrics`: vLLM's names and types, and the simulator's own as `coterie_sim_*`, in the Prometheus text format.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::app::App;
use crate::engine::{EngineSnapshot, Histogram};

pub(super) async fn page(State(app): State<Arc<App>>) -> Response {
    let mut page = Page {
        text: String::new(),
        labels: String::new(),
    };
    if let Some(ready) = app.ready.get()
        && let Some(snapshot) = ready.engine.snapshot().await
    {
        let model = app.settings.model_names.first().map_or("", String::as_str);
        let escaped = model.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        page.labels = format!("engine=\"0\",model_name=\"{escaped}\"");
        if ready.engine.options().side_channel.is_some() {
            nixl(&mut page, &snapshot);
        }
        gauges(&mut page, &snapshot);
        counters(&mut page, &snapshot);
        histograms(&mut page, &snapshot);
        let options = ready.engine.options();
        page.head(
            "vllm:cache_config_info",
            "gauge",
            "Information of the LLMEngine CacheConfig",
        );
        let cache = format!(
            "block_size=\"{}\",num_gpu_blocks=\"{}\"",
            options.block_size, options.kv_blocks
        );
        page.sample("vllm:cache_config_info", &cache, 1.0);
        own(&mut page, &snapshot);
    }
    page.labels.clear();
    page.head(
        "http_requests_total",
        "counter",
        "Total number of requests by method, status and handler.",
    );
    for ((handler, method, class), count) in app.http_requests() {
        let labels = format!("handler=\"{handler}\",method=\"{method}\",status=\"{class}xx\"");
        page.sample("http_requests_total", &labels, count as f64);
    }
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page.text).into_response()
}

fn nixl(page: &mut Page, s: &EngineSnapshot) {
    let m = &s.metrics;
    page.histogram(
        "vllm:nixl_xfer_time_seconds",
        "Histogram of transfer duration for NIXL KV Cache transfers.",
        &m.xfer_time,
    );
    page.histogram(
        "vllm:nixl_bytes_transferred",
        "Histogram of bytes transferred per NIXL KV Cache transfers.",
        &m.xfer_bytes,
    );
    page.counter(
        "vllm:nixl_num_failed_transfers",
        "Number of failed NIXL KV Cache transfers.",
        m.failed_transfers,
    );
    page.counter(
        "vllm:nixl_num_failed_notifications",
        "Number of failed NIXL KV Cache notifications.",
        m.failed_notifications,
    );
    page.counter(
        "vllm:nixl_num_kv_expired_reqs",
        "Number of requests that had their KV expire. Tracked on the prefill worker.",
        m.kv_expired_reqs,
    );
    page.counter(
        "vllm:nixl_num_notifications_after_expiry",
        "Number of notifications for KV that had already expired or been freed.",
        m.notifications_after_expiry,
    );
}

fn gauges(page: &mut Page, s: &EngineSnapshot) {
    page.gauge(
        "vllm:num_requests_running",
        "Number of requests in model execution batches.",
        s.running as f64,
    );
    page.gauge(
        "vllm:num_requests_waiting",
        "Number of requests waiting to be processed.",
        (s.waiting + s.fetching) as f64,
    );
    page.head("vllm:num_requests_waiting_by_reason", "gauge", "Number of waiting requests by reason: capacity = waiting for scheduling capacity, deferred = waiting for KV transfer.");
    page.sample(
        "vllm:num_requests_waiting_by_reason",
        "reason=\"capacity\"",
        s.waiting as f64,
    );
    page.sample(
        "vllm:num_requests_waiting_by_reason",
        "reason=\"deferred\"",
        s.fetching as f64,
    );
    page.head(
        "vllm:engine_sleep_state",
        "gauge",
        "Engine sleep state; awake = 1 means engine is awake.",
    );
    for (state, value) in [("awake", 1.0), ("weights_offloaded", 0.0), ("discard_all", 0.0)] {
        page.sample("vllm:engine_sleep_state", &format!("sleep_state=\"{state}\""), value);
    }
    let used = (s.blocks_total - s.blocks_free) as f64 / s.blocks_total.max(1) as f64;
    page.gauge(
        "vllm:kv_cache_usage_perc",
        "KV-cache usage. 1 means 100 percent usage.",
        used,
    );
}

fn counters(page: &mut Page, s: &EngineSnapshot) {
    let m = &s.metrics;
    page.counter(
        "vllm:prefix_cache_queries",
        "Prefix cache queries, in terms of number of queried tokens.",
        m.prefix_queries,
    );
    page.counter(
        "vllm:prefix_cache_hits",
        "Prefix cache hits, in terms of number of cached tokens.",
        0,
    );
    page.counter("vllm:external_prefix_cache_queries", "External prefix cache queries from KV connector cross-instance cache sharing, in terms of number of queried tokens.", m.prefix_queries);
    page.counter("vllm:external_prefix_cache_hits", "External prefix cache hits from KV connector cross-instance cache sharing, in terms of number of cached tokens.", m.prompt_tokens_external);
    page.counter(
        "vllm:num_preemptions",
        "Cumulative number of preemption from the engine.",
        0,
    );
    page.counter(
        "vllm:prompt_tokens",
        "Number of prefill tokens processed.",
        m.prompt_tokens,
    );
    page.head(
        "vllm:prompt_tokens_by_source_total",
        "counter",
        "Number of prompt tokens by source.",
    );
    for (source, tokens) in [
        ("local_compute", m.prompt_tokens_local),
        ("local_cache_hit", 0),
        ("external_kv_transfer", m.prompt_tokens_external),
    ] {
        page.sample(
            "vllm:prompt_tokens_by_source_total",
            &format!("source=\"{source}\""),
            tokens as f64,
        );
    }
    page.counter(
        "vllm:prompt_tokens_cached",
        "Number of cached prompt tokens (local + external).",
        m.prompt_tokens_external,
    );
    page.counter(
        "vllm:generation_tokens",
        "Number of generation tokens processed.",
        m.generation_tokens,
    );
    page.head(
        "vllm:request_success_total",
        "counter",
        "Count of successfully processed requests.",
    );
    for (reason, count) in [
        ("stop", m.success_stop),
        ("length", m.success_length),
        ("abort", m.success_abort),
        ("error", m.success_error),
        ("repetition", 0),
    ] {
        page.sample(
            "vllm:request_success_total",
            &format!("finished_reason=\"{reason}\""),
            count as f64,
        );
    }
}

fn histograms(page: &mut Page, s: &EngineSnapshot) {
    let m = &s.metrics;
    page.histogram(
        "vllm:request_prompt_tokens",
        "Number of prefill tokens processed.",
        &m.request_prompt_tokens,
    );
    page.histogram(
        "vllm:request_generation_tokens",
        "Number of generation tokens processed.",
        &m.request_generation_tokens,
    );
    page.histogram(
        "vllm:iteration_tokens_total",
        "Histogram of number of tokens per engine_step.",
        &m.iteration_tokens,
    );
    page.histogram(
        "vllm:request_params_max_tokens",
        "Histogram of the max_tokens request parameter.",
        &m.request_max_tokens,
    );
    page.histogram(
        "vllm:time_to_first_token_seconds",
        "Histogram of time to first token in seconds.",
        &m.ttft,
    );
    page.histogram(
        "vllm:inter_token_latency_seconds",
        "Histogram of inter-token latency in seconds.",
        &m.inter_token,
    );
    page.histogram(
        "vllm:request_time_per_output_token_seconds",
        "Histogram of time_per_output_token_seconds per request.",
        &m.per_output_token,
    );
    page.histogram(
        "vllm:e2e_request_latency_seconds",
        "Histogram of e2e request latency in seconds.",
        &m.e2e,
    );
    page.histogram(
        "vllm:request_queue_time_seconds",
        "Histogram of time spent in WAITING phase for request.",
        &m.queue,
    );
    page.histogram(
        "vllm:request_inference_time_seconds",
        "Histogram of time spent in RUNNING phase for request.",
        &m.inference,
    );
    page.histogram(
        "vllm:request_prefill_time_seconds",
        "Histogram of time spent in PREFILL phase for request.",
        &m.prefill,
    );
    page.histogram(
        "vllm:request_decode_time_seconds",
        "Histogram of time spent in DECODE phase for request.",
        &m.decode,
    );
    page.histogram(
        "vllm:request_prefill_kv_computed_tokens",
        "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
        &m.prefill_computed_tokens,
    );
}

/// The figures of `/sim/v1/state`: since the last `POST /sim/v1/reset`, so all gauges.
fn own(page: &mut Page, s: &EngineSnapshot) {
    let sim = &s.sim;
    page.gauge(
        "coterie_sim_decode_steps",
        "Decode steps since the last reset.",
        sim.steps as f64,
    );
    page.gauge(
        "coterie_sim_decode_overrun_steps",
        "Decode steps since the last reset whose work did not fit their paced time.",
        sim.overrun_steps as f64,
    );
    page.gauge(
        "coterie_sim_decode_batch_mean_requests",
        "Mean requests per decode step since the last reset.",
        sim.per_step(sim.batch_sum as f64),
    );
    page.head(
        "coterie_sim_distinct_experts_mean_experts",
        "gauge",
        "Mean distinct experts per decode step since the last reset, by layer.",
    );
    for (layer, sum) in sim.distinct_sum.iter().enumerate() {
        page.sample(
            "coterie_sim_distinct_experts_mean_experts",
            &format!("layer=\"{layer}\""),
            sim.per_step(*sum as f64),
        );
    }
    page.gauge(
        "coterie_sim_decode_step_mean_seconds",
        "Mean duration of a decode step since the last reset.",
        sim.step_ms.mean() / 1000.0,
    );
    page.gauge(
        "coterie_sim_decode_step_paced_mean_seconds",
        "Mean paced time of a decode step since the last reset.",
        sim.per_step(sim.paced_ms) / 1000.0,
    );
    page.gauge(
        "coterie_sim_decode_step_computing_mean_seconds",
        "Mean computing time of a decode step since the last reset.",
        sim.per_step(sim.computing_ms) / 1000.0,
    );
    page.gauge(
        "coterie_sim_prefill_steps",
        "Prefill steps since the last reset.",
        sim.prefill_steps as f64,
    );
    page.gauge(
        "coterie_sim_prefill_overrun_steps",
        "Prefill steps since the last reset whose work did not fit their paced time.",
        sim.prefill_overrun_steps as f64,
    );
    page.gauge(
        "coterie_sim_recorded_requests",
        "Finished requests since the last reset that the recording answered.",
        sim.recorded as f64,
    );
    page.gauge(
        "coterie_sim_lease_expiries_requests",
        "Hand-offs since the last reset whose lease ran out.",
        sim.lease_expiries as f64,
    );
    page.gauge(
        "coterie_sim_foreign_pulls_requests",
        "Pulls since the last reset that read another request's KV.",
        sim.foreign_pulls as f64,
    );
    page.head(
        "coterie_sim_kv_blocks",
        "gauge",
        "KV blocks by state: free, held by a running request, pinned for a decode worker.",
    );
    let held = s.blocks_total - s.blocks_free - s.blocks_pinned;
    for (state, blocks) in [("free", s.blocks_free), ("held", held), ("pinned", s.blocks_pinned)] {
        page.sample("coterie_sim_kv_blocks", &format!("state=\"{state}\""), blocks as f64);
    }
}

struct Page {
    text: String,
    /// Labels of every sample.
    labels: String,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, extra: &str, value: f64) {
        let labels = match (self.labels.as_str(), extra) {
            ("", extra) => extra.to_owned(),
            (labels, "") => labels.to_owned(),
            (labels, extra) => format!("{labels},{extra}"),
        };
        let _ = if labels.is_empty() {
            writeln!(self.text, "{name} {value:?}")
        } else {
            writeln!(self.text, "{name}{{{labels}}} {value:?}")
        };
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, "gauge", help);
        self.sample(name, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        let name = format!("{name}_total");
        self.head(&name, "counter", help);
        self.sample(&name, "", value as f64);
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (bound, count) in histogram.cumulative() {
            self.sample(&bucket, &format!("le=\"{bound:?}\""), count as f64);
        }
        self.sample(&bucket, "le=\"+Inf\"", histogram.count() as f64);
        self.sample(&format!("{name}_count"), "", histogram.count() as f64);
        self.sample(&format!("{name}_sum"), "", histogram.sum());
    }
}
