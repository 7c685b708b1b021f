//! `GET /v1/models`, from the routing document.

use http::{HeaderValue, Response, header};
use serde_json::json;

use super::{body::DoorBody, errors::DoorError};
use crate::core::Core;

pub(super) fn list(core: &Core) -> Response<DoorBody> {
    let view = core.routing.view();
    let Some(active) = &view.active else {
        return DoorError::Unavailable.response("the router has no routing document yet");
    };
    let model = &active.document.model.name;
    let body = json!({"object": "list", "data": [
        {"id": model, "object": "model", "created": 0, "owned_by": "coterie", "root": model, "parent": null}
    ]});
    let mut response = Response::new(DoorBody::whole(body.to_string().into()));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
