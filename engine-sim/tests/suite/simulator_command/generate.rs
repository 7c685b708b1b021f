//! `coterie-sim generate`.

use serde_json::Value;

use super::{bad, gates, good, path};

#[test]
fn generated_gates_come_near_what_was_asked_for() {
    let out = path("like.npz");
    let report: Value = serde_json::from_str(&good(&[
        "generate",
        "--like",
        gates(),
        "--requests",
        "120",
        "--trials",
        "40",
        "--json",
        "--out",
        &out,
    ]))
    .unwrap();
    assert!(report["error"].as_f64().unwrap() < 6.0, "{report:#}");
    assert_eq!(report["plan"]["domains"], 3);
    assert!(report["target"]["rho"].is_number() && report["reached"]["rho"].is_number());
    good(&["run", "--gates", &out, "--requests", "50"]);
    let table = good(&[
        "generate",
        "--geometry",
        "2x16x2",
        "--rho",
        "0.5",
        "--distinct",
        "16=12",
        "--requests",
        "60",
        "--trials",
        "5",
        "--out",
        &out,
    ]);
    assert!(
        table.contains("rho") && table.contains("0.500") && table.contains("batch 16"),
        "{table}"
    );
    good(&[
        "generate",
        "--geometry",
        "2x16x2",
        "--parameters",
        "domain=2,own=0",
        "--requests",
        "9",
        "--out",
        &out,
    ]);
}

#[test]
fn gates_that_cannot_be_are_refused() {
    let out = path("refused.npz");
    let usage: [&[&str]; 5] = [
        &[],
        &["--like", "a", "--geometry", "2x16x2"],
        &["--geometry", "2x16x2", "--requests", "1"],
        &["--geometry", "2x16x2", "--prompt-tokens", "9-5"],
        &["--geometry", "2x16x2", "--parameters", "own=1", "--rho", "0.5"],
    ];
    for args in usage {
        let (code, error) = bad(&[&["generate", "--out", &out][..], args].concat());
        assert_eq!(code, 2, "{args:?}: {error}");
    }
    let reasons: [(&[&str], &str); 6] = [
        (&["--geometry", "2x16"], "LAYERSxEXPERTSxTOPK"),
        (&["--geometry", "2x16x17"], "17"),
        (&["--geometry", "2x16x2", "--parameters", "size=1"], "persistence"),
        (&["--geometry", "2x16x2", "--parameters", "base=7"], "at most 6"),
        (&["--geometry", "2x16x2", "--distinct", "5=9"], "128"),
        (&["--geometry", "58x256x8", "--requests", "100000"], "fewer requests"),
    ];
    for (args, reason) in reasons {
        let (code, error) = bad(&[&["generate", "--out", &out][..], args].concat());
        assert!(code == 1 && error.contains(reason), "{args:?}: {error}");
    }
    let (_, error) = bad(&[
        "generate",
        "--geometry",
        "2x16x2",
        "--requests",
        "9",
        "--out",
        "/no/such/folder/x.npz",
    ]);
    assert!(error.contains("cannot write"), "{error}");
}
