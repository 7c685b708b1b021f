//! Counts from an engine's answer to an 8192-token prompt: JSON with the base64 of an `.npy` array [tokens, L, k]. Beside numpy.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use coterie_locality::{ActivationCounts, Geometry, counts_from_npy};
use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::{
    exchange::write_npy,
    peer::{path, seconds},
    report::Table,
    suite::{Suite, say},
    timing::{Times, human},
};

/// Tokens of the prompt.
const TOKENS: usize = 8192;

/// What the router reads of an answer.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    routed_experts: &'a RawValue,
}

/// Measures one answer.
pub(super) fn run(suite: &mut Suite) -> anyhow::Result<()> {
    let mut table = Table::new(
        "counts",
        [
            "geometry, ids",
            "JSON",
            "ours p50",
            "of JSON",
            "find field",
            "base64",
            "count",
            "of npy bytes",
            "numpy p50",
            "numpy / ours",
        ],
    );
    for (geometry, descr) in [(Geometry::new(48, 128, 8)?, "|u1"), (Geometry::new(58, 256, 8)?, "<u2")] {
        say(&format!("counts {}x{} {descr}", geometry.layers, geometry.experts));
        one(suite, geometry, descr, &mut table)?;
    }
    suite.report.table(table);
    Ok(())
}

fn one(suite: &mut Suite, geometry: Geometry, descr: &str, table: &mut Table) -> anyhow::Result<()> {
    let npy_file = suite.file("experts.npy");
    write_npy(
        &npy_file,
        descr,
        &[TOKENS, geometry.layers, geometry.top_k],
        ids(&geometry, descr).into_iter(),
    )?;
    let npy = std::fs::read(&npy_file)?;
    let body = json!({
        "id": "cmpl-1", "object": "text_completion", "model": "m",
        "choices": [{"index": 0, "text": "x", "finish_reason": "length", "routed_experts": STANDARD.encode(&npy)}],
        "usage": {"prompt_tokens": TOKENS, "completion_tokens": 1},
    })
    .to_string();
    let file = suite.file("answer.json");
    std::fs::write(&file, &body)?;
    let arguments = json!({"answer": path(&file), "experts": geometry.experts, "calls": suite.rounds(20, 3)});
    let mut peer = suite.python.start(1)?;
    let (mut whole, mut find, mut decode, mut count, mut theirs) = <(Times, Times, Times, Times, Times)>::default();
    let mut sums = serde_json::Value::Null;
    let calls = suite.rounds(40, 5);
    for _ in 0..suite.rounds(5, 2) {
        whole.add(Times::of(calls, |_| read(body.as_bytes(), &geometry)));
        find.add(Times::of(calls, |_| field(body.as_bytes()).map(str::len)));
        let text = field(body.as_bytes()).unwrap_or_default();
        decode.add(Times::of(calls, |_| STANDARD.decode(text)));
        count.add(Times::of(calls, |_| counts_from_npy(&npy, &geometry, ..)));
        let answer = peer.call("counts", &arguments)?;
        theirs.add(seconds(&answer)?);
        sums = answer["counts"].clone();
    }
    let own = read(body.as_bytes(), &geometry).map(|counts| json!(counts.cells()));
    anyhow::ensure!(own.as_ref() == Some(&sums), "numpy counts differently");
    let rate = body.len() as f64 / whole.median() / 1e9;
    table.row([
        // Without the bar of "|u1", which would end a cell.
        format!(
            "{}x{}, {}",
            geometry.layers,
            geometry.experts,
            descr.trim_start_matches('|')
        ),
        format!("{:.1} MB", body.len() as f64 / 1e6),
        human(whole.median()),
        format!("{rate:.2} GB/s"),
        human(find.median()),
        human(decode.median()),
        human(count.median()),
        format!("{:.2} GB/s", npy.len() as f64 / count.median() / 1e9),
        human(theirs.median()),
        format!("{:.1}", theirs.median() / whole.median()),
    ]);
    if descr == "|u1" {
        let what = "counts from an answer to an 8k-token prompt, 48x128";
        suite
            .report
            .bar(what, "≥ 1 GB/s of JSON", format!("{rate:.2} GB/s"), rate >= 1.0);
    }
    Ok(())
}

/// Random ids as an engine would store them, rarer ones as rare as Zipf has them.
fn ids(geometry: &Geometry, descr: &str) -> Vec<u8> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(41);
    let wide = descr == "<u2";
    let mut bytes = Vec::new();
    for _ in 0..TOKENS * geometry.ids_per_token() {
        let u: f64 = rng.gen_range(0.0..1.0);
        let id = ((u * u * geometry.experts as f64) as u16).min(geometry.experts as u16 - 1);
        let both = id.to_le_bytes();
        bytes.extend(&both[..if wide { 2 } else { 1 }]);
    }
    bytes
}

/// The steps of the router's reader of vLLM's answers, with the same libraries.
fn read(body: &[u8], geometry: &Geometry) -> Option<ActivationCounts> {
    let bytes = STANDARD.decode(field(body)?).ok()?;
    counts_from_npy(&bytes, geometry, ..).ok()
}

fn field(body: &[u8]) -> Option<&str> {
    let answer: Answer<'_> = serde_json::from_slice(body).ok()?;
    let raw = answer.choices.first()?.routed_experts.get();
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    (!inner.as_bytes().contains(&b'\\')).then_some(inner)
}
