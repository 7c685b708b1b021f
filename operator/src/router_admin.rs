//! Client of the routers' admin port.

use std::time::Duration;

use coterie_crds::{
    admin::{STATE_PATH, STATISTICS_PATH, State, StatisticsReport},
    names::ROUTER_ADMIN_PORT,
};
use futures::{StreamExt, future::join_all};
use serde::de::DeserializeOwned;

use crate::fleet::workers::RouterPod;

const TIMEOUT: Duration = Duration::from_secs(2);
/// A report of 96 slides with 1024 clusters each stays below this.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// Asks routers by pod IP.
#[derive(Clone, Debug)]
pub struct RouterAdmin {
    http: reqwest::Client,
    port: u16,
}

/// Why a router did not answer.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// No answer.
    #[error("no answer")]
    Http(#[from] reqwest::Error),
    /// Not 200.
    #[error("answered {0}")]
    Status(reqwest::StatusCode),
    /// Too long.
    #[error("answer is longer than {MAX_ANSWER_BYTES} bytes")]
    TooLong,
    /// Not the JSON that was expected.
    #[error("answer is not understood")]
    Malformed(#[from] serde_json::Error),
}

impl RouterAdmin {
    /// A client; `port` is the admin port of every router.
    pub fn new(port: u16) -> Result<Self, reqwest::Error> {
        // Pod addresses are direct: a proxy from the environment would only get in the way.
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .connect_timeout(TIMEOUT)
            .no_proxy()
            .build()?;
        Ok(Self { http, port })
    }

    /// A client of the port that the operator gives to routers.
    pub fn standard() -> Result<Self, reqwest::Error> {
        Self::new(ROUTER_ADMIN_PORT)
    }

    /// What each router routes by, in the order of `routers`.
    pub async fn states(&self, token: &str, routers: &[RouterPod]) -> Vec<Result<State, AdminError>> {
        join_all(routers.iter().map(|r| self.get(token, &r.ip, STATE_PATH))).await
    }

    /// Statistics of each router, in the order of `routers`.
    pub async fn statistics(&self, token: &str, routers: &[RouterPod]) -> Vec<Result<StatisticsReport, AdminError>> {
        join_all(routers.iter().map(|r| self.get(token, &r.ip, STATISTICS_PATH))).await
    }

    async fn get<T: DeserializeOwned>(&self, token: &str, ip: &str, path: &str) -> Result<T, AdminError> {
        let host = if ip.contains(':') {
            format!("[{ip}]")
        } else {
            ip.to_owned()
        };
        let url = format!("http://{host}:{}{path}", self.port);
        let answer = self.http.get(url).bearer_auth(token).send().await?;
        if answer.status() != reqwest::StatusCode::OK {
            return Err(AdminError::Status(answer.status()));
        }
        let mut body = Vec::new();
        let mut chunks = answer.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(AdminError::TooLong);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(serde_json::from_slice(&body)?)
    }
}
