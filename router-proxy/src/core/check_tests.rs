//! What is refused before any worker hears of it.

use super::*;

fn param(endpoint: Endpoint, body: &str) -> Option<&'static str> {
    let fields = Fields::parse(body.as_bytes()).unwrap();
    rewritten(endpoint, &fields).err().map(|r| r.param.unwrap())
}

#[test]
fn values_that_only_decode_would_see_are_refused_by_name() {
    use Endpoint::{ChatCompletions, Completions};
    for (endpoint, body, refused) in [
        (Completions, r#"{"max_tokens":1,"min_tokens":0,"stream":null}"#, None),
        (Completions, r#"{"max_tokens":0}"#, Some("max_tokens")),
        (Completions, r#"{"max_tokens":-1}"#, Some("max_tokens")),
        (Completions, r#"{"max_tokens":1.5}"#, Some("max_tokens")),
        (Completions, r#"{"max_tokens":"5"}"#, Some("max_tokens")),
        (Completions, r#"{"max_tokens":3,"max_tokens":3}"#, Some("max_tokens")),
        (
            ChatCompletions,
            r#"{"max_completion_tokens":[]}"#,
            Some("max_completion_tokens"),
        ),
        (Completions, r#"{"max_tokens":3,"min_tokens":4}"#, Some("min_tokens")),
        (Completions, r#"{"min_tokens":17}"#, Some("min_tokens")),
        (Completions, r#"{"max_tokens":null,"min_tokens":17}"#, None),
        (Completions, r#"{"min_tokens":-1}"#, Some("min_tokens")),
        (ChatCompletions, r#"{"min_tokens":17}"#, None),
        (
            ChatCompletions,
            r#"{"max_tokens":9,"max_completion_tokens":3,"min_tokens":4}"#,
            Some("min_tokens"),
        ),
        (Completions, r#"{"stream":"true"}"#, Some("stream")),
        (Completions, r#"{"stream":1}"#, Some("stream")),
        (Completions, r#"{"return_token_ids":3}"#, Some("return_token_ids")),
        (
            Completions,
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            None,
        ),
        (
            Completions,
            r#"{"stream_options":{"include_usage":true}}"#,
            Some("stream_options"),
        ),
        (
            Completions,
            r#"{"stream":true,"stream_options":7}"#,
            Some("stream_options"),
        ),
        (
            Completions,
            r#"{"stream":true,"stream_options":{"include_usage":"x"}}"#,
            Some("stream_options"),
        ),
    ] {
        assert_eq!(param(endpoint, body), refused, "{body}");
    }
}
