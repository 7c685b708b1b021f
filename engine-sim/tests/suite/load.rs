//! `coterie-load` against a worker.

use coterie_engine_sim::load::{LoadArgs, LoadCli, LoadCommand, run, write_prompts};
use serde_json::{Value, json};

use super::common::{Worker, folder, settings, start};

fn parse(worker: &Worker, extra: &str) -> LoadArgs {
    let recording = folder("recordings/tiny-moe.npz");
    let model = folder("models/tiny-moe");
    let fixed = format!(
        "coterie-load --target {} --model tiny --recording {} --model-dir {} --domains python=2,zh --seed 3 {extra}",
        worker.url,
        recording.display(),
        model.display(),
    );
    match LoadCli::parse_lenient(fixed.split_whitespace().map(str::to_owned)).command {
        LoadCommand::Send(args) => *args,
        LoadCommand::Prompts(_) => panic!("not the load command"),
    }
}

#[tokio::test]
async fn closed_loop_verifies_every_answer_and_reads_the_workers() {
    let worker = start(settings()).await;
    let cli = parse(
        &worker,
        &format!(
            "--concurrency 4 --requests 30 --warmup-requests 5 --verify --workers {}",
            worker.url
        ),
    );
    let report = run(&cli).await.unwrap();
    assert_eq!(
        (report.ok, report.failed, report.warmup_failed),
        (30, 0, 0),
        "{report:?}"
    );
    assert_eq!(report.domains.values().sum::<usize>(), 30);
    let state = report.workers[0].state.as_ref().unwrap();
    assert_eq!(state["requests"]["finished"], 30, "the warm-up is not counted");
    assert!(report.ttft_ms.is_some() && report.tpot_ms.is_some());
}

#[tokio::test]
async fn open_loop_with_ids_and_without_streams() {
    let worker = start(settings()).await;
    let cli = parse(
        &worker,
        "--rate 200 --requests 20 --stream false --prompt-form ids --verify --max-tokens 9",
    );
    let report = run(&cli).await.unwrap();
    assert_eq!((report.ok, report.failed), (20, 0), "{report:?}");
    assert!(report.ttft_ms.is_none() && report.total_ms.is_some());
}

#[tokio::test]
async fn failures_are_counted_by_kind() {
    let worker = start(settings()).await;
    worker
        .fault(json!({ "kind": "status", "value": 503, "path": "/v1/", "count": 2 }))
        .await;
    worker
        .fault(json!({ "kind": "cut_stream", "after_tokens": 3, "count": 1 }))
        .await;
    let cli = parse(&worker, "--concurrency 1 --requests 6 --max-tokens 8");
    let report = run(&cli).await.unwrap();
    assert_eq!((report.ok, report.failed), (3, 3), "{report:?}");
    assert_eq!(
        (report.failed_by_kind["http_5xx"], report.failed_by_kind["broken"]),
        (2, 1)
    );
    assert_eq!(report.errors.len(), 3);
}

#[tokio::test]
async fn prompts_are_bodies_that_an_engine_takes() {
    let worker = start(settings()).await;
    let args = format!(
        "coterie-load prompts --recording {} --model-dir {} --domains zh,ru --count 12",
        folder("recordings/tiny-moe.npz").display(),
        folder("models/tiny-moe").display(),
    );
    let LoadCommand::Prompts(args) = LoadCli::parse_lenient(args.split_whitespace().map(str::to_owned)).command else {
        panic!("not the prompts command");
    };
    let mut out = Vec::new();
    write_prompts(&args, &mut out).unwrap();
    let lines: Vec<Value> = String::from_utf8(out)
        .unwrap()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 12);
    worker.complete(&lines[0]).await;
    assert_eq!(worker.state().await["requests"]["recorded"], 1);
}
