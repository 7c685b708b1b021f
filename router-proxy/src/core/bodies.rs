//! Bodies of the two legs, made from the client's fields.

use bytes::Bytes;

use super::{
    fields::{Fields, ObjectWriter},
    request::Endpoint,
};
use crate::dialect::steering;

/// Fields that the prefill leg sets itself or does without: it makes one token that nobody sees. `check` judges
/// them; all else goes to prefill as the client sent it, so that prefill refuses what decode would.
pub(super) const NOT_ON_PREFILL: &[&str] = &[
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "min_tokens",
    "return_token_ids",
];

/// A leg's body that still lacks the hand-off's field.
#[derive(Debug)]
pub(super) struct Body(Bytes);

impl Body {
    /// The body without hand-off.
    pub(super) fn plain(&self) -> Bytes {
        self.0.clone()
    }

    /// The body with one more field; `json` is written as it is.
    pub(super) fn with(&self, field: &str, json: &str) -> Bytes {
        let mut open = self.0.trim_ascii_end();
        open = open.strip_suffix(b"}").unwrap_or(open).trim_ascii_end();
        let mut body = Vec::with_capacity(open.len() + field.len() + json.len() + 8);
        body.extend_from_slice(open);
        if !open.ends_with(b"{") {
            body.push(b',');
        }
        body.push(b'"');
        body.extend_from_slice(field.as_bytes());
        body.extend_from_slice(b"\":");
        body.extend_from_slice(json.as_bytes());
        body.push(b'}');
        body.into()
    }
}

/// One token, at once, without anything that asks for more.
pub(super) fn prefill(endpoint: Endpoint, fields: &Fields<'_>, size: usize) -> Body {
    let mut writer = ObjectWriter::with_capacity(size.saturating_add(64));
    copy(fields, &mut writer, |name| !NOT_ON_PREFILL.contains(&name));
    writer.field("stream", "false");
    writer.field("max_tokens", "1");
    if endpoint == Endpoint::ChatCompletions {
        writer.field("max_completion_tokens", "1");
    }
    Body(writer.finish().into())
}

/// The client's own body; its very bytes when nothing in it steers.
pub(super) fn decode(fields: &Fields<'_>, body: &Bytes) -> Body {
    let steers = |name: &str| steering::is_steering_field(name) || name == steering::NESTED_FIELD;
    if !fields.iter().any(|(name, _)| steers(name)) {
        return Body(body.clone());
    }
    let mut writer = ObjectWriter::with_capacity(body.len());
    copy(fields, &mut writer, |_| true);
    Body(writer.finish().into())
}

/// Copies the wanted fields, without any that steer.
fn copy(fields: &Fields<'_>, writer: &mut ObjectWriter, wanted: impl Fn(&str) -> bool) {
    for (name, value) in fields.iter() {
        if steering::is_steering_field(name) || !wanted(name) {
            continue;
        }
        if name == steering::NESTED_FIELD
            && let Ok(nested) = Fields::parse(value.get().as_bytes())
        {
            let mut inner = ObjectWriter::with_capacity(value.get().len());
            for (name, value) in nested.iter().filter(|(n, _)| !steering::is_steering_field(n)) {
                inner.field(name, value.get());
            }
            writer.field(name, &String::from_utf8_lossy(&inner.finish()));
        } else {
            writer.field(name, value.get());
        }
    }
}
