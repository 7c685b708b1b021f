//! The decode worker's end of the side channel.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::{Deserialize, Serialize};

use super::{Blocks, import};

/// The prefill worker's answer about a hand-off, field by field as vLLM's NIXL connector sends it. Opaque to everybody between the two workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandOff {
    /// Tells the decode worker to pull.
    pub do_remote_prefill: bool,
    /// Always false here.
    pub do_remote_decode: bool,
    /// Block ids, one list per KV group (there is one).
    pub remote_block_ids: Vec<Vec<u32>>,
    /// Identity of the prefill worker's process.
    pub remote_engine_id: String,
    /// The prefill worker's own id of the request.
    pub remote_request_id: String,
    /// Host of the side channel.
    pub remote_host: String,
    /// Port of the side channel.
    pub remote_port: u16,
    /// Tensor-parallel ranks.
    #[serde(default = "one")]
    pub tp_size: u32,
    /// Decode-context-parallel ranks.
    #[serde(default = "one")]
    pub dcp_size: u32,
    /// Pipeline-parallel ranks.
    #[serde(default = "one")]
    pub pp_size: u32,
    /// Tokens whose KV is there.
    #[serde(default)]
    pub remote_num_tokens: usize,
    /// Null, as in the recorded answers.
    #[serde(default)]
    pub remote_blocks_expiry_time: Option<f64>,
    /// `pull`.
    #[serde(default)]
    pub transfer_mode: String,
}

fn one() -> u32 {
    1
}

/// Why KV could not be pulled.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// No answer.
    #[error("the side channel at {0} does not answer: {1}")]
    Unreachable(String, String),
    /// The prefill worker refused.
    #[error("the prefill worker at {0} answered {1}: {2}")]
    Refused(String, u16, String),
    /// The answer cannot be used.
    #[error("the prefill worker at {0} sent unusable KV: {1}")]
    Unusable(String, String),
}

/// Pulls blocks and tells the prefill worker what became of a hand-off.
#[derive(Clone)]
pub struct PullClient {
    client: Client<HttpConnector, Full<Bytes>>,
    block_width: usize,
    timeout: Duration,
}

impl PullClient {
    /// A client for blocks of `block_width` floats that waits `timeout` for an answer.
    pub fn new(block_width: usize, timeout: Duration) -> Self {
        Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
            block_width,
            timeout,
        }
    }

    /// Reads the hand-off's blocks, whatever they hold now.
    pub async fn read(&self, from: &HandOff) -> Result<Blocks, PullError> {
        let ids = from.remote_block_ids.first().map_or(&[][..], Vec::as_slice);
        let body = serde_json::json!({
            "engine_id": from.remote_engine_id, "request_id": from.remote_request_id, "block_ids": ids,
        });
        let limit = 64 + ids.len() * (9 + self.block_width * 4);
        let bytes = self.post(from, "read", &body, limit).await?;
        import(&bytes, self.block_width).map_err(|e| PullError::Unusable(peer(from), e))
    }

    /// Tells the prefill worker that it may free the blocks: `outcome` is `pulled` or `rejected`.
    pub async fn notify(&self, to: &HandOff, outcome: &str) -> Result<(), PullError> {
        let body = serde_json::json!({
            "engine_id": to.remote_engine_id, "request_id": to.remote_request_id, "outcome": outcome,
        });
        self.post(to, "notify", &body, 4096).await.map(|_| ())
    }

    async fn post(&self, to: &HandOff, call: &str, body: &serde_json::Value, limit: usize) -> Result<Bytes, PullError> {
        let unreachable = |e: String| PullError::Unreachable(peer(to), e);
        let request = Request::post(format!("http://{}/kv/{call}", peer(to)))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(|e| unreachable(e.to_string()))?;
        let exchange = async {
            let response = self.client.request(request).await.map_err(|e| unreachable(chain(&e)))?;
            let status = response.status();
            let limit = if status.is_success() { limit } else { 4096 };
            let bytes = Limited::new(response.into_body(), limit)
                .collect()
                .await
                .map_err(|e| PullError::Unusable(peer(to), e.to_string()))?
                .to_bytes();
            if status.is_success() {
                return Ok(bytes);
            }
            Err(PullError::Refused(
                peer(to),
                status.as_u16(),
                String::from_utf8_lossy(&bytes).into_owned(),
            ))
        };
        tokio::time::timeout(self.timeout, exchange)
            .await
            .unwrap_or_else(|_| Err(unreachable(format!("no answer within {} s", self.timeout.as_secs()))))
    }
}

fn peer(of: &HandOff) -> String {
    if of.remote_host.contains(':') {
        format!("[{}]:{}", of.remote_host, of.remote_port)
    } else {
        format!("{}:{}", of.remote_host, of.remote_port)
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}
