//! A plain HTTP client: JSON in, a body of frames out.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Method, Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

const MAX_ANSWER: usize = 64 << 20;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL cannot be used.
    #[error("{0}")]
    Url(String),
    /// No connection, or it broke before the answer's head.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// The answer's body broke off or is too large.
    #[error("the answer broke off: {0}")]
    Broken(String),
}

/// Sends requests over kept connections.
#[derive(Clone)]
pub struct HttpClient {
    client: Client<HttpConnector, Full<Bytes>>,
    headers: HeaderMap,
}

impl HttpClient {
    /// A client that sends these headers with every request.
    pub fn new(headers: HeaderMap) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(Duration::from_secs(10)));
        Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            headers,
        }
    }

    /// Sends a request and returns once the answer's head is there.
    pub async fn send(&self, method: Method, url: &str, body: Vec<u8>) -> Result<Response<Incoming>, ClientError> {
        if !url.starts_with("http://") {
            return Err(ClientError::Url(format!(
                "{url:?} is not supported: give a URL that starts with http://"
            )));
        }
        let mut request = Request::builder()
            .method(method)
            .uri(url)
            .header(CONTENT_TYPE, "application/json");
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers.clone());
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|e| ClientError::Url(format!("{url:?}: {e}")))?;
        self.client.request(request).await.map_err(|e| {
            let cause = std::error::Error::source(&e)
                .map(|c| format!(": {c}"))
                .unwrap_or_default();
            ClientError::NoAnswer(format!("{e}{cause}"))
        })
    }

    /// Sends a request and reads the whole answer.
    pub async fn exchange(&self, method: Method, url: &str, body: Vec<u8>) -> Result<(u16, Bytes), ClientError> {
        let response = self.send(method, url, body).await?;
        let status = response.status().as_u16();
        Ok((status, read(response.into_body()).await?))
    }
}

/// Reads a whole body.
pub(super) async fn read(body: Incoming) -> Result<Bytes, ClientError> {
    let collected = Limited::new(body, MAX_ANSWER)
        .collect()
        .await
        .map_err(|e| ClientError::Broken(e.to_string()))?;
    Ok(collected.to_bytes())
}
