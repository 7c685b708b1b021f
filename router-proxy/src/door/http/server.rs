//! Connections: accepted until the drain begins, finished after.

use std::{convert::Infallible, sync::Arc, time::Duration};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::routes;
use crate::core::Core;

/// Pause after an accept that failed for want of something, such as file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const MAX_STREAMS_PER_CONNECTION: u32 = 1024;

/// What every request of the door shares.
#[derive(Debug)]
pub(crate) struct Door {
    pub(super) core: Arc<Core>,
    pub(super) places: Arc<Semaphore>,
    /// Cancelled when the process shall end.
    pub(super) draining: CancellationToken,
}

impl Door {
    pub(crate) fn new(core: Arc<Core>, draining: CancellationToken) -> Arc<Self> {
        let places = core.limits.max_requests.min(Semaphore::MAX_PERMITS);
        Arc::new(Self {
            core,
            places: Arc::new(Semaphore::new(places)),
            draining,
        })
    }
}

/// Serves until the drain is over: after `draining`, new connections are taken for the drain delay more, and what is in flight then may
/// finish within the drain timeout. Whether everything did.
pub(crate) async fn serve(listener: TcpListener, door: Arc<Door>) -> bool {
    let limits = door.core.limits.clone();
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS_PER_CONNECTION)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    let graceful = GracefulShutdown::new();
    let closing = async {
        door.draining.cancelled().await;
        sleep(limits.drain_delay).await;
    };
    tokio::pin!(closing);
    let open = Arc::new(Semaphore::new(limits.max_connections.min(Semaphore::MAX_PERMITS)));
    let accept = async || {
        let permit = Arc::clone(&open).acquire_owned().await;
        (permit, listener.accept().await)
    };
    loop {
        tokio::select! {
            biased;
            () = &mut closing => break,
            (permit, accepted) = accept() => match accepted {
                Ok((stream, _)) => connection(&builder, &graceful, Arc::clone(&door), stream, permit.ok()),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    timeout(limits.drain_timeout, graceful.shutdown()).await.is_ok()
}

fn connection(
    builder: &auto::Builder<TokioExecutor>,
    graceful: &GracefulShutdown,
    door: Arc<Door>,
    stream: TcpStream,
    permit: Option<OwnedSemaphorePermit>,
) {
    // Tokens are small and each shall go out at once; a socket that refuses is only slower.
    let _ = stream.set_nodelay(true);
    let within = door.core.limits.header_timeout;
    let heard = CancellationToken::new();
    let first_request = heard.clone();
    let service = service_fn(move |request| {
        first_request.cancel();
        let door = Arc::clone(&door);
        async move { Ok::<_, Infallible>(routes::handle(door, request).await) }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        let _permit = permit;
        tokio::pin!(connection);
        // HTTP's own time-outs begin once it is known which HTTP is spoken; a client may be silent before that.
        let ended = tokio::select! {
            ended = &mut connection => ended,
            heard = timeout(within, heard.cancelled()) => match heard {
                Ok(()) => connection.await,
                Err(_) => return,
            },
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        }
    });
}
