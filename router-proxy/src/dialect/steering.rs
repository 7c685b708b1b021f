//! What of a client's request could steer engines or transfer protocols. Routing is the router's: all of it is removed, by explicit lists.

/// Body fields that are removed, at the top level and inside `vllm_xargs`.
const BODY_FIELDS: &[&str] = &[
    // vLLM
    "kv_transfer_params",
    "ec_transfer_params",
    "request_id",
    "priority",
    "data_parallel_rank",
    "routed_experts_prompt_start",
    // SGLang
    "rid",
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
    "bootstrap_pair_key",
    "decode_tp_size",
    "routed_dp_rank",
    "disagg_prefill_dp_rank",
    "return_routed_experts",
    "routed_experts_start_len",
];

/// Body fields that are removed whatever follows the prefix.
const BODY_PREFIXES: &[&str] = &["bootstrap_"];

/// Field whose object vLLM passes on to its connectors.
pub(crate) const NESTED_FIELD: &str = "vllm_xargs";

/// Headers that are removed.
const HEADERS: &[&str] = &[
    "x-request-id",
    "x-data-parallel-rank",
    "x-vllm-priority",
    "x-prefiller-url",
    "x-prefiller-host-port",
    "x-prefiller-hosts-ports",
    "x-encoder-hosts-ports",
    "x-data-parallel-host-port",
    "x-gateway-destination-endpoint",
    "x-gateway-destination-endpoint-served",
    "x-gateway-inference-fairness-id",
    "x-gateway-inference-objective",
    "x-gateway-model-name-rewrite",
    "endpoint-load-metrics-format",
];

/// Headers that are removed whatever follows the prefix.
const HEADER_PREFIXES: &[&str] = &["x-override-", "x-bootstrap-", "x-kv-", "x-coterie-"];

/// Whether a body field is removed.
pub(crate) fn is_steering_field(name: &str) -> bool {
    BODY_FIELDS.contains(&name) || BODY_PREFIXES.iter().any(|p| name.starts_with(p))
}

/// Whether a header is removed; `name` in lower case.
pub(crate) fn is_steering_header(name: &str) -> bool {
    HEADERS.contains(&name) || HEADER_PREFIXES.iter().any(|p| name.starts_with(p))
}
