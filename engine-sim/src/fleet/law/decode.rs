//! Laws as coefficients.

/// What one decode step has to do on one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepWork {
    /// Distinct experts, summed over layers. With expert parallelism: of each layer's slowest rank, summed over layers.
    pub experts: f64,
    /// Requests in the batch.
    pub batch: f64,
    /// Tokens of KV that attention reads, summed over the batch.
    pub kv_tokens: f64,
}

/// Seconds that a decode step takes:
/// `fixed + max(experts x per_expert, batch x per_request_experts) + max(dense, batch x per_request_dense) + batch x per_request
/// + kv_tokens x per_kv_token + exchange`.
///
/// The two maxima are the roofline: few tokens wait for weights, many for arithmetic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecodeLaw {
    /// Launches, sampling, scheduling.
    pub fixed: f64,
    /// Weights of one distinct expert of one layer.
    pub per_expert: f64,
    /// Arithmetic of one request's experts, all layers.
    pub per_request_experts: f64,
    /// Weights outside the routed experts.
    pub dense: f64,
    /// Arithmetic of one request outside the routed experts.
    pub per_request_dense: f64,
    /// Whatever else a request costs.
    pub per_request: f64,
    /// One token of KV.
    pub per_kv_token: f64,
    /// Exchange of activations between ranks; zero on one rank.
    pub exchange: ExchangeLaw,
}

/// Dispatch to the experts' ranks and back: `fixed + batch x per_request` seconds a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExchangeLaw {
    /// Latency of the exchanges of all layers.
    pub fixed: f64,
    /// Bytes of one request over the links, all layers.
    pub per_request: f64,
}

impl DecodeLaw {
    /// 4 ms + 0.08 ms x distinct experts summed over layers + 0.05 ms x batch: no model's law, used with the tiny recorded gates.
    pub fn plain() -> Self {
        Self::linear(4e-3, 8e-5, 5e-5)
    }

    /// A law of three coefficients, in seconds.
    pub fn linear(fixed: f64, per_expert: f64, per_request: f64) -> Self {
        Self {
            fixed,
            per_expert,
            per_request_experts: 0.0,
            dense: 0.0,
            per_request_dense: 0.0,
            per_request,
            per_kv_token: 0.0,
            exchange: ExchangeLaw::default(),
        }
    }

    /// Seconds of one step; 0 for an empty batch.
    pub fn seconds(&self, work: &StepWork) -> f64 {
        if work.batch <= 0.0 {
            return 0.0;
        }
        let experts = (work.experts * self.per_expert).max(work.batch * self.per_request_experts);
        let dense = self.dense.max(work.batch * self.per_request_dense);
        self.fixed
            + experts
            + dense
            + work.batch * self.per_request
            + work.kv_tokens * self.per_kv_token
            + self.exchange.fixed
            + work.batch * self.exchange.per_request
    }
}

/// Seconds that a prefill takes: `fixed + max(tokens x per_token, weights) + tokens^2 x per_token_squared`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrefillLaw {
    /// Launches, sampling, scheduling.
    pub fixed: f64,
    /// Arithmetic of one prompt token.
    pub per_token: f64,
    /// Attention of a token to those before it, for each pair of tokens.
    pub per_token_squared: f64,
    /// All weights once: a short prompt waits for them.
    pub weights: f64,
}

impl PrefillLaw {
    /// 4 ms + 0.02 ms per token: engine-sim's default.
    pub fn plain() -> Self {
        Self {
            fixed: 4e-3,
            per_token: 2e-5,
            per_token_squared: 0.0,
            weights: 0.0,
        }
    }

    /// Seconds for `tokens` new tokens of a prompt whose first `cached` tokens have KV already.
    pub fn seconds(&self, tokens: f64, cached: f64) -> f64 {
        let pairs = tokens * (cached + tokens / 2.0);
        self.fixed + (tokens * self.per_token).max(self.weights) + pairs * self.per_token_squared
    }
}

/// Seconds that a KV hand-off takes: `latency + tokens x bytes_per_token / bytes_per_second`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransferLaw {
    /// Handshake and first byte, seconds.
    pub latency: f64,
    /// KV of one token.
    pub bytes_per_token: f64,
    /// Network of one worker.
    pub bytes_per_second: f64,
}

impl TransferLaw {
    /// Seconds for a prompt of this many tokens.
    pub fn seconds(&self, tokens: f64) -> f64 {
        self.latency + tokens * self.bytes_per_token / self.bytes_per_second
    }
}
