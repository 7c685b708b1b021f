//! Errors in the form that OpenAI clients expect, as vLLM writes them.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// An error answer.
#[derive(Debug)]
pub(super) struct ApiError {
    pub(super) status: StatusCode,
    pub(super) message: String,
    pub(super) param: Option<&'static str>,
}

#[derive(Serialize)]
pub(super) struct ErrorBody<'a> {
    error: ErrorFields<'a>,
}

#[derive(Serialize)]
struct ErrorFields<'a> {
    message: &'a str,
    r#type: &'static str,
    param: Option<&'static str>,
    code: u16,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            param: None,
        }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn about(param: &'static str, message: impl Into<String>) -> Self {
        Self {
            param: Some(param),
            ..Self::bad(message)
        }
    }

    pub(super) fn unsupported(param: &'static str) -> Self {
        Self::about(param, format!("{param} is not supported by engine-sim: leave it out"))
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    pub(super) fn body(&self) -> ErrorBody<'_> {
        let kind = match self.status.as_u16() {
            400 => "BadRequestError",
            404 => "NotFoundError",
            429 => "TooManyRequestsError",
            500 => "InternalServerError",
            503 => "ServiceUnavailableError",
            _ => "Error",
        };
        ErrorBody {
            error: ErrorFields {
                message: &self.message,
                r#type: kind,
                param: self.param,
                code: self.status.as_u16(),
            },
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(self.body())).into_response()
    }
}
