//! Prompts that the recording answers.

use super::common::{events, experts, ids, recording, settings, start, text, token_ids};
use coterie_engine_sim::tokenizer::TextCodec;
use hyper::Method;
use serde_json::json;

#[tokio::test]
async fn text_and_ids_give_the_recorded_continuation_with_exact_counts() {
    let recording = recording();
    let codec = TextCodec::load(&super::common::folder("models/tiny-moe")).unwrap();
    let mut settings = settings();
    settings.capture = true;
    let worker = start(settings).await;
    for request in [1, 250, 777] {
        let prompt = recording.prompt(request);
        for form in [json!(prompt), json!(codec.decode(prompt))] {
            let answer = worker
                .complete(&json!({ "prompt": form, "max_tokens": 500, "temperature": 0.3, "return_token_ids": true }))
                .await;
            assert_eq!(token_ids(&answer), recording.generated(request));
            assert_eq!(ids(&answer["choices"][0]["prompt_token_ids"]), prompt);
            assert_eq!(text(&answer), codec.decode_streamed(recording.generated(request)));
            assert_eq!(answer["choices"][0]["finish_reason"], "length");
            let (shape, rows) = experts(&answer);
            assert_eq!(shape, [prompt.len() + 127, 6, 4]);
            let mut counts = vec![0_u16; 6 * 64];
            for (i, expert) in rows[..prompt.len() * 24].iter().enumerate() {
                counts[i / 4 % 6 * 64 + *expert as usize] += 1;
            }
            let recorded: Vec<u16> = (0..6)
                .flat_map(|l| recording.prefill_counts(request, l))
                .copied()
                .collect();
            assert_eq!(counts, recorded);
            for step in 0..127 {
                let at = (prompt.len() + step) * 24;
                assert_eq!(&rows[at..at + 24], recording.decode_row(request, step));
            }
        }
    }
    let state = worker.state().await;
    assert_eq!(state["requests"]["recorded"], 6);
}

#[tokio::test]
async fn a_replay_returns_the_recorded_choices_of_the_generated_tokens() {
    let recording = recording();
    let mut settings = settings();
    settings.capture = true;
    let worker = start(settings).await;
    for (request, replayed) in [(5, 1), (5, 40), (600, 127), (600, 128)] {
        let mut prompt = recording.prompt(request).to_vec();
        let own = prompt.len();
        prompt.extend_from_slice(&recording.generated(request)[..replayed]);
        let answer = worker
            .complete(&json!({ "prompt": prompt, "max_tokens": 1, "return_token_ids": true }))
            .await;
        let (shape, rows) = experts(&answer);
        assert_eq!(shape, [own + replayed, 6, 4]);
        assert_eq!(&rows[..own * 24], recording.prefill_rows(request));
        for step in 0..replayed {
            let at = (own + step) * 24;
            assert_eq!(&rows[at..at + 24], recording.decode_row(request, step));
        }
        let next = recording
            .generated(request)
            .get(replayed)
            .or(recording.generated(request).last());
        assert_eq!(token_ids(&answer).first(), next);
    }
}

#[tokio::test]
async fn steps_count_batch_and_distinct_experts_and_reset_starts_anew() {
    let recording = recording();
    let worker = start(settings()).await;
    let body = json!({ "prompt": recording.prompt(9), "max_tokens": 11, "stream": true });
    let (_, stream) = worker.call(Method::POST, "/v1/completions", &body).await;
    assert_eq!(events(&stream).len(), 11);
    let state = worker.state().await;
    // The first token comes with the prefill; one request alone activates exactly top-k experts per layer.
    assert_eq!(
        (&state["steps"], &state["mean_batch"], &state["mean_distinct_experts"]),
        (&10.into(), &1.0.into(), &24.0.into())
    );
    assert_eq!(worker.call(Method::POST, "/sim/v1/reset", &json!(null)).await.0, 204);
    assert_eq!(worker.state().await["steps"], 0);
}

#[tokio::test]
async fn a_prompt_that_is_not_recorded_goes_through_the_model() {
    let recording = recording();
    let worker = start(settings()).await;
    let mut prompt = recording.prompt(9).to_vec();
    prompt.push(70);
    worker.complete(&json!({ "prompt": prompt, "max_tokens": 3 })).await;
    let state = worker.state().await;
    assert_eq!(
        (&state["requests"]["finished"], &state["requests"]["recorded"]),
        (&1.into(), &0.into())
    );
}
