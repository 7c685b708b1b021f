//! Checks of the fields that the prefill leg does without or sets itself. The prefill worker never sees the client's values, so only the
//! decode worker would refuse them, and by then the prefill worker holds blocks that nobody pulls.

use serde_json::{Value, value::RawValue};

use super::{bodies::NOT_ON_PREFILL, fields::Fields, request::Endpoint};

/// Tokens that engines make of a completion that does not say.
const DEFAULT_COMPLETION_TOKENS: u64 = 16;

/// Why a body is refused, for the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) message: String,
    /// The field at fault; `None`: the body as a whole.
    pub(crate) param: Option<&'static str>,
}

impl Refused {
    pub(super) fn body(message: String) -> Self {
        Self { message, param: None }
    }

    fn field(param: &'static str, message: String) -> Self {
        let param = Some(param);
        Self { message, param }
    }
}

/// Checks types and ranges of what the prefill worker is not shown.
pub(super) fn rewritten(endpoint: Endpoint, fields: &Fields<'_>) -> Result<(), Refused> {
    for name in NOT_ON_PREFILL {
        if fields.iter().filter(|(n, _)| n == name).count() > 1 {
            return Err(Refused::field(name, format!("{name} is given more than once")));
        }
    }
    let max_tokens = integer(fields, "max_tokens", 1)?;
    let max_completion_tokens = integer(fields, "max_completion_tokens", 1)?;
    integer(fields, "max_output_tokens", 1)?;
    let most = match endpoint {
        Endpoint::ChatCompletions => max_completion_tokens.or(max_tokens),
        Endpoint::Completions if fields.get("max_tokens").is_none() => Some(DEFAULT_COMPLETION_TOKENS),
        Endpoint::Completions => max_tokens,
    };
    if let (Some(least), Some(most)) = (integer(fields, "min_tokens", 0)?, most)
        && least > most
    {
        let message = format!("min_tokens must be less than or equal to max_tokens={most}, got {least}");
        return Err(Refused::field("min_tokens", message));
    }
    boolean(fields, "return_token_ids")?;
    let stream = boolean(fields, "stream")?;
    stream_options(fields, stream)
}

fn integer(fields: &Fields<'_>, name: &'static str, least: u64) -> Result<Option<u64>, Refused> {
    let Some(raw) = present(fields, name) else {
        return Ok(None);
    };
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(Value::Number(n)) if n.is_u64() || n.is_i64() => match n.as_u64().filter(|n| *n >= least) {
            Some(n) => Ok(Some(n)),
            None => Err(Refused::field(
                name,
                format!("{name} must be at least {least}, got {n}"),
            )),
        },
        _ => Err(Refused::field(name, format!("{name} must be an integer or null"))),
    }
}

fn boolean(fields: &Fields<'_>, name: &'static str) -> Result<bool, Refused> {
    match present(fields, name).map(RawValue::get) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Refused::field(name, format!("{name} must be true, false or null"))),
    }
}

fn stream_options(fields: &Fields<'_>, stream: bool) -> Result<(), Refused> {
    const NAME: &str = "stream_options";
    let Some(raw) = present(fields, NAME) else {
        return Ok(());
    };
    let refuse = |message: &str| Err(Refused::field(NAME, message.to_owned()));
    let Ok(options) = Fields::parse(raw.get().as_bytes()) else {
        return refuse("stream_options must be an object or null");
    };
    if options
        .iter()
        .any(|(_, v)| !matches!(v.get(), "true" | "false" | "null"))
    {
        return refuse("stream_options may hold only true, false and null");
    }
    if !stream {
        return refuse("stream_options is only allowed when stream is true");
    }
    Ok(())
}

fn present<'a>(fields: &Fields<'a>, name: &str) -> Option<&'a RawValue> {
    fields.get(name).filter(|v| v.get() != "null")
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
