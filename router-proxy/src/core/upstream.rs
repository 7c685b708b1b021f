//! HTTP to the workers. Dropping a future or a body closes its connection, which is how engines learn that nobody waits any more.

use std::{fmt::Display, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::timeout;

use super::failure::LegError;
use crate::args::LimitArgs;

/// Engines close idle connections after 5 s: ours go first, so that none is reused in the moment that it closes.
const POOL_IDLE: Duration = Duration::from_secs(4);
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The client side of every leg.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    client: Client<HttpConnector, Full<Bytes>>,
}

/// A POST to a worker.
#[derive(Debug)]
pub(crate) struct Post<'a> {
    pub(crate) address: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) request_id: &'a str,
    pub(crate) body: Bytes,
    /// Longest wait for the answer's head.
    pub(crate) within: Duration,
}

impl Upstream {
    pub(crate) fn new(limits: &LimitArgs) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(limits.connect_timeout));
        connector.set_nodelay(true);
        connector.set_keepalive(Some(Duration::from_secs(30)));
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .build(connector);
        Self { client }
    }

    /// Sends a request and waits for the answer's head.
    pub(crate) async fn post(&self, post: Post<'_>) -> Result<Response<Incoming>, LegError> {
        let request = request(&post).map_err(|e| broken(post.address, &e))?;
        self.send(post.address, request, post.within).await
    }

    /// Fetches a small page.
    pub(crate) async fn get(
        &self,
        address: &str,
        path: &str,
        limit: usize,
        within: Duration,
    ) -> Result<Bytes, LegError> {
        let request = Request::builder()
            .uri(format!("http://{address}{path}"))
            .body(Full::default())
            .map_err(|e| broken(address, &e))?;
        let page = async {
            let (head, body) = self.send(address, request, within).await?.into_parts();
            let body = read(address, body, limit, within).await?;
            if head.status.is_success() {
                return Ok(body);
            }
            Err(LegError::Status {
                worker: address.to_owned(),
                head: Box::new(head),
                body,
            })
        };
        timeout(within, page).await.unwrap_or_else(|_| Err(late(address)))
    }

    async fn send(
        &self,
        address: &str,
        request: Request<Full<Bytes>>,
        within: Duration,
    ) -> Result<Response<Incoming>, LegError> {
        match timeout(within, self.client.request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_connect() => Err(LegError::Connect {
                worker: address.to_owned(),
                error: chain(&error),
            }),
            Ok(Err(error)) => Err(broken(address, &chain(&error))),
            Err(_) => Err(late(address)),
        }
    }
}

fn request(post: &Post<'_>) -> Result<Request<Full<Bytes>>, http::Error> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(format!("http://{}{}", post.address, post.path))
        .body(Full::new(post.body.clone()))?;
    let headers = request.headers_mut();
    headers.clone_from(post.headers);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(REQUEST_ID, HeaderValue::try_from(post.request_id)?);
    Ok(request)
}

/// Reads a whole body of at most `limit` bytes, with at most `idle` between its parts.
pub(crate) async fn read(address: &str, mut body: Incoming, limit: usize, idle: Duration) -> Result<Bytes, LegError> {
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    loop {
        let frame = timeout(idle, body.frame()).await.map_err(|_| late(address))?;
        let Some(frame) = frame else {
            return Ok(if whole.is_empty() { first } else { whole.freeze() });
        };
        let Ok(data) = frame.map_err(|e| broken(address, &chain(&e)))?.into_data() else {
            continue;
        };
        if first.len() + whole.len() + data.len() > limit {
            return Err(broken(address, &format!("its answer is longer than {limit} bytes")));
        }
        if whole.is_empty() && first.is_empty() {
            first = data;
        } else {
            if whole.is_empty() {
                whole.extend_from_slice(&first);
                first.clear();
            }
            whole.extend_from_slice(&data);
        }
    }
}

pub(crate) fn broken(worker: &str, error: &dyn Display) -> LegError {
    LegError::Broken {
        worker: worker.to_owned(),
        error: error.to_string(),
    }
}

pub(crate) fn late(worker: &str) -> LegError {
    LegError::Timeout {
        worker: worker.to_owned(),
    }
}

/// An error with its causes: hyper's own text names only the outermost.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
