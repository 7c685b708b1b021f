//! From a request's head to a response.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use hyper::body::Incoming;

use super::{
    body::{self, DoorBody},
    client::ClientTurn,
    errors::{self, DoorError},
    headers, models,
    relay::Relay,
    server::Door,
};
use crate::{
    core::{Answer, AnswerBody, ClientRequest, Endpoint, Failure, FailureKind, Wanted, completion_tokens},
    telemetry::ClientOutcome,
};

/// Answers one request. Dropping the future, as the server does when the client leaves, cancels everything upstream.
pub(super) async fn handle(door: Arc<Door>, request: Request<Incoming>) -> Response<DoorBody> {
    let id = headers::request_id(request.headers());
    let id = id.or_else(|| HeaderValue::try_from(door.core.new_id()).ok());
    let version = request.version();
    let mut response = route(&door, request).await;
    if let Some(id) = id {
        response.headers_mut().insert(headers::REQUEST_ID, id);
    }
    if door.draining.is_cancelled() && version <= http::Version::HTTP_11 {
        // Load balancers that keep connections open are told to look elsewhere.
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn route(door: &Arc<Door>, request: Request<Incoming>) -> Response<DoorBody> {
    let path = request.uri().path();
    let endpoint = Endpoint::ALL.into_iter().find(|e| e.path() == path);
    match (endpoint, request.method()) {
        (Some(endpoint), &Method::POST) => infer(door, endpoint, request).await,
        (None, &Method::GET | &Method::HEAD) if path == "/v1/models" => models::list(&door.core),
        (None, _) if path != "/v1/models" => DoorError::NotFound.response(&format!(
            "{path} is not served here; try POST /v1/completions, POST /v1/chat/completions or GET /v1/models"
        )),
        _ => DoorError::MethodNotAllowed.response(&format!("{} is not allowed on {path}", request.method())),
    }
}

async fn infer(door: &Arc<Door>, endpoint: Endpoint, request: Request<Incoming>) -> Response<DoorBody> {
    let core = &door.core;
    let Ok(place) = Arc::clone(&door.places).try_acquire_owned() else {
        core.metrics.request_began();
        core.metrics.request_ended(endpoint, ClientOutcome::Overloaded);
        return DoorError::Overloaded.response("the router serves as many requests as it may; try again");
    };
    let mut turn = ClientTurn::new(Arc::clone(core), endpoint, place);
    let (head, body) = request.into_parts();
    let request = match read(door, endpoint, &head.headers, body).await {
        Ok(request) => request,
        Err((error, message)) => {
            turn.ends(match error {
                DoorError::Unavailable => ClientOutcome::Unavailable,
                _ => ClientOutcome::Refused,
            });
            return error.response(&message);
        }
    };
    match core.answer(&request).await {
        Ok(answer) => relay(answer, turn),
        Err(failure) => {
            turn.ends(outcome(&failure));
            errors::failure(failure)
        }
    }
}

async fn read(
    door: &Door,
    endpoint: Endpoint,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<ClientRequest, (DoorError, String)> {
    let limits = &door.core.limits;
    let view = door.core.routing.view();
    let Some(active) = &view.active else {
        let message = "the router has no routing document yet; see its /readyz";
        return Err((DoorError::Unavailable, message.to_owned()));
    };
    let encoding = headers.get(header::CONTENT_ENCODING);
    if encoding.is_some_and(|e| !e.as_bytes().eq_ignore_ascii_case(b"identity")) {
        let message = "the body is compressed; send it without Content-Encoding";
        return Err((DoorError::Encoded, message.to_owned()));
    }
    let body = body::read(headers, body, limits.max_body_bytes, limits.body_timeout).await;
    let body = body.map_err(|error| {
        let message = match error {
            DoorError::BodyTooLarge => format!("the body is longer than {} bytes", limits.max_body_bytes),
            DoorError::BodyTooSlow => "the body did not come in time".to_owned(),
            _ => "the body could not be read".to_owned(),
        };
        (error, message)
    })?;
    let wanted = Wanted {
        prefix_bytes: usize::try_from(active.document.prefill.prefix_bytes).unwrap_or(usize::MAX),
        text: active.reads_text(),
    };
    ClientRequest::parse(endpoint, headers::for_workers(headers), &body, wanted).map_err(|refused| {
        (
            refused.param.map_or(DoorError::BadRequest, DoorError::BadField),
            refused.message,
        )
    })
}

fn relay(answer: Answer, mut turn: ClientTurn) -> Response<DoorBody> {
    let Answer {
        head,
        body,
        error_event,
        mut completion,
    } = answer;
    let end = if error_event {
        ClientOutcome::Failed
    } else {
        ClientOutcome::Ok
    };
    let body = match body {
        AnswerBody::Whole(bytes) => {
            turn.ends(end);
            completion.ended(completion_tokens(&bytes));
            DoorBody::whole(bytes)
        }
        AnswerBody::Stream { first, rest } => DoorBody::Relay(Box::new(Relay::new(first, rest, completion, turn, end))),
    };
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = headers::for_client(head.headers);
    response
}

fn outcome(failure: &Failure) -> ClientOutcome {
    match failure {
        Failure::Own { kind, .. } => match kind {
            FailureKind::Unavailable => ClientOutcome::Unavailable,
            FailureKind::BadGateway => ClientOutcome::Failed,
            FailureKind::GatewayTimeout => ClientOutcome::TimedOut,
        },
        Failure::Engine { head, .. } => match head.status.as_u16() {
            429 => ClientOutcome::Overloaded,
            400..500 => ClientOutcome::Refused,
            _ => ClientOutcome::Failed,
        },
    }
}
