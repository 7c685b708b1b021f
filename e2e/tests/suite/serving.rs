//! Answers through the router.

use anyhow::{Result, ensure};
use coterie_crds::{conditions, names};
use coterie_e2e::{
    client::{OpenAi, Traffic, completion},
    fleet::{Fleet, SETTLE},
    prompts, spec,
    suite::Suite,
    wait::{Look, until},
};
use serde_json::{Value, json};

const DOMAINS: [&str; 4] = ["python", "legal", "zh", "ru"];
/// Prompts that are not in the recording: the engines run the model's forward pass on them.
const OWN: [&str; 4] = [
    "def parse(line):\n    \"\"\"Split a line of the log into fields.\"\"\"\n",
    "The licensee may redistribute the work in source form provided that",
    "Die Option legt fest, in welchem Verzeichnis",
    "Команда выводит список файлов, которые",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_through_the_router_equal_one_worker_alone() -> Result<()> {
    let suite = Suite::start().await?;
    let spec = spec::small(suite.image("engine-sim")?);
    let fleet = Fleet::create(&suite, "e2e-lossless", spec, &prompts::recorded(&DOMAINS, 240)?).await?;
    fleet.settle().await?;
    let router = fleet.router().await?;
    let alone = &fleet.pod_clients(names::ROLE_DECODE, names::ENGINE_PORT).await?[0].1;

    for prompt in OWN {
        let greedy = completion(prompt, 24);
        let mut seeded = greedy.clone();
        seeded["temperature"] = json!(0.8);
        seeded["seed"] = json!(7);
        for body in [greedy, seeded] {
            same(&router, alone, "/v1/completions", &body).await?;
        }
        let chat = json!({"model": spec::MODEL, "messages": [{"role": "user", "content": prompt}], "max_tokens": 24, "temperature": 0});
        same(&router, alone, "/v1/chat/completions", &chat).await?;
    }
    fleet.delete_namespace().await
}

/// Streaming and not, through the router and from one worker alone: four times the same text.
async fn same(router: &OpenAi, alone: &OpenAi, path: &str, body: &Value) -> Result<()> {
    let wanted = text(&alone.post(path, body).await?);
    ensure!(!wanted.is_empty(), "one worker alone answers nothing to {body}");
    for (what, got) in [
        ("router", text(&router.post(path, body).await?)),
        ("router, streaming", router.stream(path, body).await?),
        ("alone, streaming", alone.stream(path, body).await?),
    ] {
        ensure!(got == wanted, "{what} differs for {body}:\n{got:?}\n{wanted:?}");
    }
    Ok(())
}

fn text(answer: &Value) -> String {
    let choice = &answer["choices"][0];
    choice["text"]
        .as_str()
        .or(choice["message"]["content"].as_str())
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traffic_succeeds_with_locality_routing() -> Result<()> {
    let suite = Suite::start().await?;
    let spec = spec::small(suite.image("engine-sim")?);
    let fleet = Fleet::create(&suite, "e2e-traffic", spec, &prompts::recorded(&DOMAINS, 240)?).await?;
    fleet.settle().await?;

    let traffic = Traffic::start(&fleet.router().await?, prompts::recorded(&DOMAINS, 400)?, 8, 16);
    until("traffic", SETTLE, || async {
        let answered = traffic.answered();
        Ok(if answered >= 300 {
            Look::Done(())
        } else {
            Look::NotYet(format!("{answered} answered"))
        })
    })
    .await?;
    traffic.stop().await.expect_all_answered()?;
    fleet.condition(conditions::SIGNATURES_AVAILABLE, "True").await?;

    let metrics = fleet.pod_clients(names::ROLE_ROUTER, names::METRICS_PORT).await?[0]
        .1
        .get("/metrics")
        .await?;
    ensure!(
        value(&metrics, "coterie_router_signature_requests_total{result=\"signed\"}") >= 300.0,
        "signatures:\n{metrics}"
    );
    ensure!(
        value(&metrics, "coterie_router_band_workers_count") >= 300.0,
        "decisions by the band:\n{metrics}"
    );
    fleet.delete_namespace().await
}

fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(series));
    line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(-1.0)
}
