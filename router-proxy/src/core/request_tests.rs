//! What reaches each leg of a client's body.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json, value::RawValue};

use super::*;

const WANTED: Wanted = Wanted {
    prefix_bytes: 1024,
    text: true,
};

fn parse(endpoint: Endpoint, body: &str) -> ClientRequest {
    ClientRequest::parse(
        endpoint,
        HeaderMap::new(),
        &Bytes::copy_from_slice(body.as_bytes()),
        WANTED,
    )
    .unwrap()
}

fn prefill(request: &ClientRequest) -> Value {
    serde_json::from_slice(&request.prefill_body("kv_transfer_params", r#"{"do_remote_decode":true}"#)).unwrap()
}

fn decode(request: &ClientRequest) -> Value {
    let object = RawValue::from_string(r#"{"remote":1}"#.to_owned()).unwrap();
    serde_json::from_slice(&request.decode_body(Some(("kv_transfer_params", &object)))).unwrap()
}

#[test]
fn prefill_makes_one_token_and_decode_keeps_the_clients_word() {
    let request = parse(
        Endpoint::ChatCompletions,
        r#"{"model":"m","messages":[],"max_completion_tokens":50,"min_tokens":5,"stream":true,"temperature":0.80,
            "stream_options":{"include_usage":true},"return_token_ids":true,"logprobs":true,"top_logprobs":3,"stop":["x"]}"#,
    );
    assert!(request.stream && request.usage_event);
    assert_eq!(
        prefill(&request),
        json!({"model":"m","messages":[],"temperature":0.8,"logprobs":true,"top_logprobs":3,"stop":["x"],"stream":false,"max_tokens":1,
            "max_completion_tokens":1,"kv_transfer_params":{"do_remote_decode":true}})
    );
    let decode = decode(&request);
    assert_eq!(decode["max_completion_tokens"], 50);
    assert_eq!(decode["min_tokens"], 5);
    assert_eq!(decode["return_token_ids"], true);
    assert_eq!(decode["kv_transfer_params"], json!({"remote": 1}));
    assert!(decode.get("max_tokens").is_none(), "absent fields stay absent");
}

#[test]
fn the_decode_body_is_the_clients_bytes_when_nothing_steers() {
    let body = "{ \"prompt\" : \"h\\u00e9\", \"seed\": 12345678901234567890, \"x\": 1e-400 } ";
    let request = parse(Endpoint::Completions, body);
    assert_eq!(request.decode_body(None), body);
    let object = RawValue::from_string("{}".to_owned()).unwrap();
    assert_eq!(
        request.decode_body(Some(("kv_transfer_params", &object))),
        "{ \"prompt\" : \"h\\u00e9\", \"seed\": 12345678901234567890, \"x\": 1e-400,\"kv_transfer_params\":{}}"
    );
}

#[test]
fn steering_is_removed_however_it_is_spelled() {
    let request = parse(
        Endpoint::Completions,
        r#"{"prompt":"a","kv_transfer_params":{"evil":1},"kv\u005ftransfer_params":{"evil":2},"kv_transfer_params":{"evil":3},
            "bootstrap_room":7,"bootstrap_new_thing":1,"priority":-9,"request_id":"x","routed_experts_prompt_start":1,
            "vllm_xargs":{"kv_transfer_params":{"evil":4},"keep":1}}"#,
    );
    let plain: Value = serde_json::from_slice(&request.decode_body(None)).unwrap();
    assert_eq!(plain, json!({"prompt":"a","vllm_xargs":{"keep":1}}));
    for leg in [prefill(&request), decode(&request)] {
        assert!(!leg.to_string().contains("evil"), "{leg}");
    }
}

#[test]
fn what_a_hand_off_cannot_carry_is_seen() {
    use LocalReason::{BeamSearch, Echo, PromptLogprobs, SeveralAnswers, SeveralPrompts};
    for (body, reason) in [
        (r#"{"prompt":"a","n":1}"#, None),
        (r#"{"prompt":"a","n":2}"#, Some(SeveralAnswers)),
        (r#"{"prompt":"a","best_of":3}"#, Some(SeveralAnswers)),
        (r#"{"prompt":["a","b"]}"#, Some(SeveralPrompts)),
        (r#"{"prompt":["a"]}"#, None),
        (r#"{"prompt":"a","echo":true}"#, Some(Echo)),
        (r#"{"prompt":"a","echo":null,"prompt_logprobs":null}"#, None),
        (r#"{"prompt":"a","prompt_logprobs":0}"#, Some(PromptLogprobs)),
        (r#"{"prompt":"a","use_beam_search":true}"#, Some(BeamSearch)),
    ] {
        assert_eq!(parse(Endpoint::Completions, body).local, reason, "{body}");
    }
}

#[test]
fn bodies_that_cannot_be_routed_are_refused_with_a_word() {
    for (endpoint, body, word) in [
        (Endpoint::Completions, "", "not a JSON object"),
        (Endpoint::Completions, "[1]", "not a JSON object"),
        (Endpoint::Completions, r#"{"prompt":"a"} x"#, "not a JSON object"),
        (Endpoint::Completions, r#"{"prompt":null}"#, "no `prompt`"),
        (Endpoint::ChatCompletions, r#"{"prompt":"a"}"#, "no `messages`"),
    ] {
        let refused = ClientRequest::parse(endpoint, HeaderMap::new(), &Bytes::from(body), WANTED).unwrap_err();
        assert!(refused.message.contains(word), "{refused:?}");
    }
}

#[test]
fn only_a_true_stream_streams() {
    for (value, stream) in [("true", true), ("false", false), ("null", false)] {
        let body = format!(r#"{{"prompt":"a","stream":{value}}}"#);
        assert_eq!(parse(Endpoint::Completions, &body).stream, stream, "{value}");
    }
}

#[test]
fn the_text_is_counted_where_there_is_one() {
    let counted = |endpoint, body| {
        let text = parse(endpoint, body).text.unwrap();
        let mut expected = NgramCounter::new();
        expected.push("hi you".as_bytes());
        (text.is_empty(), text.ngrams() == expected.ngrams())
    };
    let chat =
        r#"{"messages":[{"role":"user","content":"hi "},{"role":"user","content":[{"type":"text","text":"you"}]}]}"#;
    assert_eq!(counted(Endpoint::ChatCompletions, chat), (false, true));
    assert_eq!(counted(Endpoint::Completions, r#"{"prompt":"hi you"}"#), (false, true));
    assert_eq!(counted(Endpoint::Completions, r#"{"prompt":[1,2]}"#), (true, false));
    assert_eq!(
        counted(Endpoint::Completions, r#"{"prompt_embeds":"AAAA"}"#),
        (true, false)
    );
}
