//! `coterie-sim` as a process.

mod generate;
mod refusals;

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

fn path(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("simulator-command");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name).display().to_string()
}

fn sim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_coterie-sim"))
        .args(args)
        .output()
        .unwrap()
}

/// Standard output of a command that must succeed.
fn good(args: &[&str]) -> String {
    let output = sim(args);
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Exit code and standard error of a command that must fail.
fn bad(args: &[&str]) -> (i32, String) {
    let output = sim(args);
    assert!(!output.status.success() && output.stdout.is_empty(), "{args:?}");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Small gates, made once.
fn gates() -> &'static str {
    static GATES: OnceLock<String> = OnceLock::new();
    GATES.get_or_init(|| {
        let file = path("gates.npz");
        let made = [
            "generate",
            "--geometry",
            "4x32x2",
            "--requests",
            "160",
            "--domains",
            "3",
            "--blended",
            "0.3",
        ];
        let lengths = ["--prompt-tokens", "20-60", "--output-tokens", "24", "--out", &file];
        good(&[&made[..], &lengths[..]].concat());
        file
    })
}

/// `run` with few requests and more arguments.
fn run(more: &[&str]) -> Value {
    let fixed = [
        "run",
        "--gates",
        gates(),
        "--workers",
        "3",
        "--requests",
        "150",
        "--batch",
        "3",
    ];
    serde_json::from_str(&good(&[&fixed[..], more].concat())).unwrap()
}

fn run_fails(more: &[&str]) -> (i32, String) {
    let fixed = ["run", "--gates", gates(), "--workers", "3", "--requests", "150"];
    bad(&[&fixed[..], more].concat())
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let args = [
        "run",
        "--gates",
        gates(),
        "--requests",
        "100",
        "--policy",
        "MarginalCost",
        "--seed",
    ];
    let with = |seed: &'static str| good(&[&args[..], &[seed]].concat());
    assert_eq!(with("5"), with("5"));
    assert_ne!(with("5"), with("6"));
    let (one, two) = (path("one.npz"), path("two.npz"));
    let make = |out: &str| {
        good(&[
            "generate",
            "--geometry",
            "2x16x2",
            "--requests",
            "30",
            "--json",
            "--out",
            out,
        ])
    };
    assert_eq!(make(&one), make(&two));
    assert_eq!(std::fs::read(one).unwrap(), std::fs::read(two).unwrap());
}

#[test]
fn a_prefill_pool_adds_its_time_to_the_first_token() {
    let plain = run(&[]);
    let arguments = [
        "--prefill-workers",
        "2",
        "--prefill-base-ms",
        "50",
        "--hand-off-ms",
        "30",
    ];
    let pool = run(&arguments);
    let ttft = |report: &Value| report["ttft_ms"]["p50"].as_f64().unwrap();
    assert!(ttft(&pool) > ttft(&plain) + 79.0, "{} {}", ttft(&pool), ttft(&plain));
    let early = run(&[&arguments[..], &["--first-token", "prefill"]].concat());
    assert!(ttft(&early) < ttft(&pool));
    run(&[
        "--prefill-workers",
        "2",
        "--choose",
        "arrival",
        "--prefill-batch-tokens",
        "0",
    ]);
}

#[test]
fn full_kv_pre_empts_and_full_batches_wait() {
    let small = run(&["--kv-tokens", "200", "--recompute-us", "50"]);
    assert!(small["preempted"].as_u64().unwrap() > 0, "{small}");
    assert_eq!(run(&[])["preempted"], 0);
    let narrow = run(&["--max-batch", "1"]);
    assert_eq!(narrow["batch"], 1.0);
}

#[test]
fn faults_lose_start_and_scale_workers() {
    let pool = ["--prefill-workers", "1", "--hand-off-ms", "200"];
    let faults = [
        "--fault",
        "0.6:stop:1",
        "--fault",
        "0.7:start:1",
        "--fault",
        "1:drain:0",
        "--fault",
        "1.5:scale:2",
    ];
    let lost = run(&[
        &pool[..],
        &faults[..],
        &["--load-seconds", "0.1", "--attempts", "5"][..],
    ]
    .concat());
    let count = |name: &str| lost[name].as_u64().unwrap();
    assert!(count("failed") + count("restarted") > 0, "{lost}");
    assert!(count("refused") == 0 && count("finished") > 0);
    let none = run(&["--fault", "0:scale:0"]);
    assert_eq!(none["finished"], 0);
    assert!(none["refused"].as_u64().unwrap() > 150);
}

#[test]
fn routers_see_each_other_late_or_not_at_all() {
    let blind = run(&["--routers", "4"]);
    let told = run(&[
        "--routers",
        "4",
        "--exchange-every",
        "0.01",
        "--exchange-delay",
        "0.001",
    ]);
    let scraped = run(&["--routers", "4", "--reports-every", "1", "--report-delay", "0.2"]);
    assert!(blind["tpot_ms"] != told["tpot_ms"] && told["tpot_ms"] != scraped["tpot_ms"]);
}

#[test]
fn workloads_of_every_kind_run() {
    let kinds: [&[&str]; 6] = [
        &["--arrivals", "gamma:0.3"],
        &["--arrivals", "bursts:8:0.5:2"],
        &["--arrivals", "day-night:5:0.9"],
        &["--output", "lognormal:12:1:200"],
        &["--turns", "3", "--think-seconds", "0.5", "--prefill-workers", "1"],
        &["--mix", "0:domain-0=1", "--mix", "4:domain-1=2,domain-2=1,blended=0.5"],
    ];
    let plain = run(&[]);
    for kind in kinds {
        let report = run(kind);
        assert!(report["finished"].as_u64().unwrap() > 100, "{kind:?}: {report}");
        assert_ne!(report["tpot_ms"], plain["tpot_ms"], "{kind:?}");
    }
    assert_eq!(run(&["--output", "5"])["tokens"].as_u64().unwrap() % 5, 0);
}

#[test]
fn a_trace_is_replayed_whole() {
    let trace = path("trace.csv");
    let lines: Vec<String> = (0..40)
        .map(|i| format!("{},domain-{},{}", f64::from(i) * 0.1, i % 3, 5 + i))
        .collect();
    std::fs::write(&trace, format!("time_s,domain,output_tokens\n{}\n", lines.join("\n"))).unwrap();
    let report: Value = serde_json::from_str(&good(&[
        "run",
        "--gates",
        gates(),
        "--replay",
        &trace,
        "--replay-speed",
        "2",
    ]))
    .unwrap();
    assert_eq!(report["finished"], 40);
    assert_eq!(report["tpot_ms"]["count"], 40);
    assert_eq!(report["tokens"], (0..40).map(|i| 5 + i).sum::<u64>());
    assert!((report["rate"].as_f64().unwrap() - 40.0 / 1.95).abs() < 1e-6);
    std::fs::write(&trace, "time_s,domain\n0,domain-0\n1,nowhere\n").unwrap();
    let (code, error) = bad(&["run", "--gates", gates(), "--replay", &trace]);
    assert!(
        code == 1 && error.contains("line 3") && error.contains("nowhere"),
        "{error}"
    );
    let (_, error) = bad(&["sweep", "--gates", gates(), "--replay", &trace]);
    assert!(error.contains("nothing to sweep"), "{error}");
}

#[test]
fn models_bring_their_law_and_ranks_their_placement() {
    let shape = [
        "run",
        "--gates",
        "generate:48x128x8",
        "--workers",
        "2",
        "--requests",
        "40",
        "--batch",
        "2",
        "--output",
        "8",
    ];
    let model = ["--model", "qwen3-30b-a3b", "--gpu", "mi300x", "--prefill-workers", "1"];
    let report: Value = serde_json::from_str(&good(&[&shape[..], &model[..]].concat())).unwrap();
    let tpot = report["tpot_ms"]["p50"].as_f64().unwrap();
    assert!((5.0..30.0).contains(&tpot), "{tpot} ms");
    for placement in ["linear", "eplb", "metro"] {
        let ranks = run(&["--ranks", "4", "--placement", placement]);
        assert!(
            ranks["busiest_rank"].as_f64() < ranks["distinct"].as_f64(),
            "{placement}"
        );
    }
    let map = path("placement.json");
    let row: Vec<u32> = (0..32).rev().collect();
    std::fs::write(
        &map,
        serde_json::json!({ "physical_to_logical_map": vec![row; 5] }).to_string(),
    )
    .unwrap();
    run(&["--ranks", "4", "--placement-file", &map]);
}

#[test]
fn compare_draws_bars_and_prints_json() {
    let plot = path("bars.svg");
    let fixed = [
        "compare",
        "--gates",
        gates(),
        "--workers",
        "3",
        "--requests",
        "100",
        "--seeds",
        "2",
        "--batch",
        "1,4",
    ];
    let more = [
        "--policies",
        "LocalityBand,MarginalCost",
        "--predictors",
        "prefill",
        "--json",
        "--plot",
        &plot,
    ];
    let results: Value =
        serde_json::from_str(&good(&[&fixed[..], &more[..], &["--plot-metric", "p99"]].concat())).unwrap();
    assert_eq!(results.as_array().unwrap().len(), 2);
    assert_eq!(results[0]["contenders"].as_array().unwrap().len(), 6);
    let svg = std::fs::read_to_string(&plot).unwrap();
    assert!(svg.contains("MarginalCost/prefill") && svg.contains("TPOT p99") && svg.contains("batch 4"));
    // A background, two bars for each of two loads, two in the legend.
    assert_eq!(svg.matches("<rect").count(), 1 + 4 + 2);
    let (code, error) = bad(&["compare", "--gates", gates(), "--plot-metric", "p99"]);
    assert!(code == 2 && error.contains("--plot"), "{error}");
}
