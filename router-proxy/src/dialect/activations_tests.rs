//! Activations in answers recorded from a real vLLM 0.30, and in broken ones.

use super::*;

const WITH_EXPERTS: &str = include_str!("../../tests/fixtures/vllm-0.30-pd-prefill-with-experts.json");
const WITHOUT: &str = include_str!("../../tests/fixtures/vllm-0.30-pd-prefill.json");
const CHAT: &str = include_str!("../../tests/fixtures/vllm-0.30-chat-prefill.json");

fn counts(answer: &str, geometry: &Geometry) -> Result<ActivationCounts, MissingSignature> {
    NpyActivations.prompt_counts(&PrefillAnswer::parse(answer.as_bytes()).unwrap(), geometry)
}

fn tiny() -> Geometry {
    Geometry::new(6, 64, 4).unwrap()
}

/// An answer whose `routed_experts` is this JSON and whose prompt has this many tokens.
fn answer(experts: &str, prompt_tokens: u64) -> String {
    format!(r#"{{"choices":[{{"routed_experts":{experts}}}],"usage":{{"prompt_tokens":{prompt_tokens}}}}}"#)
}

fn npy(rows: usize, id: u8) -> String {
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({rows}, 6, 4), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend(std::iter::repeat_n(id, rows * 24));
    format!("\"{}\"", STANDARD.encode(bytes))
}

#[test]
fn recorded_answers_give_every_prompt_token_once() {
    let completion = counts(WITH_EXPERTS, &tiny()).unwrap();
    assert_eq!(completion.tokens(), 75);
    completion.check_conservation().unwrap();
    assert_eq!(counts(CHAT, &tiny()).unwrap().tokens(), 8);
    assert_eq!(counts(WITHOUT, &tiny()), Err(MissingSignature::Missing));
}

#[test]
fn rows_of_generated_tokens_are_left_out() {
    assert_eq!(counts(&answer(&npy(9, 1), 5), &tiny()).unwrap().tokens(), 5);
}

#[test]
fn what_cannot_be_used_has_a_reason() {
    use MissingSignature::{Empty, Geometry as Other, Malformed, Missing};
    let cases = [
        ("null".to_owned(), 5, Missing),
        ("\"\"".to_owned(), 5, Malformed),
        ("\"!!!\"".to_owned(), 5, Malformed),
        ("[[1,2]]".to_owned(), 5, Malformed),
        ("7".to_owned(), 5, Malformed),
        (npy(3, 1), 5, Malformed),
        (npy(0, 1), 0, Empty),
        (npy(5, 64), 5, Other),
    ];
    for (experts, prompt, reason) in cases {
        assert_eq!(counts(&answer(&experts, prompt), &tiny()), Err(reason), "{experts}");
    }
    let other = Geometry::new(48, 128, 8).unwrap();
    assert_eq!(counts(WITH_EXPERTS, &other), Err(Other));
    assert_eq!(counts(r#"{"choices":[]}"#, &tiny()), Err(Missing));
    assert_eq!(counts("{}", &tiny()), Err(Missing));
}

#[test]
fn escaped_base64_is_read() {
    let escaped = WITH_EXPERTS.replace('/', "\\/");
    assert_eq!(counts(&escaped, &tiny()), counts(WITH_EXPERTS, &tiny()));
}
