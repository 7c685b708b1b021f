//! Bodies in and out.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::{errors::DoorError, relay::Relay};

/// What the door answers with.
#[derive(Debug)]
pub(crate) enum DoorBody {
    /// All of it at once.
    Whole(Option<Bytes>),
    /// A stream from a worker.
    Relay(Box<Relay>),
}

impl DoorBody {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes).filter(|b| !b.is_empty()))
    }
}

impl Body for DoorBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Self::Relay(relay) => relay.poll_next(context).map(|next| next.map(|b| Ok(Frame::data(b)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Self::Relay(_) => SizeHint::default(),
        }
    }
}

/// Reads a client's body of at most `limit` bytes, with at most `pause` between its parts.
pub(super) async fn read(
    headers: &HeaderMap,
    mut body: Incoming,
    limit: usize,
    pause: Duration,
) -> Result<Bytes, DoorError> {
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|n| n > 2 * limit as u64) {
        return Err(DoorError::BodyTooLarge);
    }
    let expected = usize::try_from(announced.unwrap_or(0)).unwrap_or(0).min(limit);
    let mut whole = BytesMut::new();
    let mut read = 0usize;
    while let Some(frame) = timeout(pause, body.frame()).await.map_err(|_| DoorError::BodyTooSlow)? {
        let Ok(data) = frame.map_err(|_| DoorError::BadRequest)?.into_data() else {
            continue;
        };
        read = read.saturating_add(data.len());
        if read > 2 * limit {
            return Err(DoorError::BodyTooLarge);
        }
        if read > limit {
            // A client that is still sending would not see the answer, so a little more is read and thrown away.
            whole = BytesMut::new();
        } else {
            if whole.is_empty() {
                whole.reserve(expected.min(1 << 20).max(data.len()));
            }
            whole.extend_from_slice(&data);
        }
    }
    if read > limit {
        return Err(DoorError::BodyTooLarge);
    }
    Ok(whole.freeze())
}
