//! Generated gates behind HTTP.

use super::common::{Worker, experts, ids, settings, start, text, token_ids};
use coterie_engine_sim::fleet::gates::generate::{Shape, preset};
use coterie_engine_sim::{Settings, SyntheticGates};
use serde_json::{Value, json};

fn synthetic() -> Settings {
    let mut settings = settings();
    settings.recording = None;
    settings.synthetic = Some(SyntheticGates {
        geometry: Shape::Qwen3A3b.geometry().unwrap(),
        parameters: preset(Shape::Qwen3A3b),
        domains: 8,
        seed: 3,
    });
    settings
}

async fn counts(worker: &Worker, prompt: &Value) -> (Vec<f64>, Value) {
    let answer = worker
        .complete(&json!({ "prompt": prompt, "max_tokens": 9, "return_token_ids": true }))
        .await;
    let prompt = ids(&answer["choices"][0]["prompt_token_ids"]).len();
    let (shape, rows) = experts(&answer);
    assert_eq!(shape, [prompt + 8, 48, 8]);
    let mut counts = vec![0.0; 48 * 128];
    for (i, expert) in rows[..prompt * 384].iter().enumerate() {
        counts[i / 8 % 48 * 128 + *expert as usize] += 1.0;
    }
    assert!(
        counts.iter().all(|c| *c <= prompt as f64),
        "no token has an expert twice"
    );
    (counts, answer)
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[tokio::test]
async fn any_prompt_gets_gates_of_its_domain_and_two_workers_agree() {
    let mut settings = synthetic();
    settings.capture = true;
    let (one, two) = (start(settings.clone()).await, start(settings).await);
    let prompt = |i: usize, domain: usize| {
        json!(format!(
            "domain-{domain} question {i}, and some more words so that it has length"
        ))
    };
    let (a, answer) = counts(&one, &prompt(1, 2)).await;
    let (again, other) = counts(&two, &prompt(1, 2)).await;
    assert_eq!((&a, text(&answer)), (&again, text(&other)));
    assert_eq!(token_ids(&answer).len(), 9);
    let (b, _) = counts(&one, &prompt(2, 2)).await;
    let (c, _) = counts(&one, &prompt(3, 5)).await;
    assert!(
        cosine(&a, &b) > cosine(&a, &c) + 0.05,
        "{} {}",
        cosine(&a, &b),
        cosine(&a, &c)
    );
    let state = one.state().await;
    assert_eq!(state["requests"]["recorded"], 3);
    assert_eq!(state["mean_distinct_experts"], 384.0);
}

#[tokio::test]
async fn a_replay_of_prompt_and_answer_has_the_answers_choices() {
    let mut settings = synthetic();
    settings.capture = true;
    let worker = start(settings).await;
    let body = json!({ "prompt": "what comes next is made up", "max_tokens": 20, "return_token_ids": true });
    let answer = worker.complete(&body).await;
    let mut prompt = ids(&answer["choices"][0]["prompt_token_ids"]);
    let (_, rows) = experts(&answer);
    let generated = token_ids(&answer);
    prompt.extend_from_slice(&generated[..19]);
    let replayed = worker
        .complete(&json!({ "prompt": prompt, "max_tokens": 1, "return_token_ids": true }))
        .await;
    assert_eq!(experts(&replayed).1, rows);
    assert_eq!(token_ids(&replayed), generated[19..]);
}

#[tokio::test]
async fn a_hand_off_goes_on_with_the_same_answer() {
    let (prefill, decode) = (start(synthetic()).await, start(synthetic()).await);
    let prompt = json!("domain-1 domain-4 a prompt that blends two");
    let whole = decode
        .complete(&json!({ "prompt": prompt, "max_tokens": 12, "return_token_ids": true }))
        .await;
    let first = prefill.prefill(&prompt).await;
    assert_eq!(token_ids(&first), token_ids(&whole)[..1]);
    let rest = decode
        .complete(&json!({
            "prompt": prompt, "max_tokens": 12, "return_token_ids": true, "kv_transfer_params": first["kv_transfer_params"],
        }))
        .await;
    assert_eq!(token_ids(&rest), token_ids(&whole));
}
