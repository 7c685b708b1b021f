use std::{fs::File, process::Stdio};

use super::*;

#[test]
fn a_table_says_what_it_is() {
    let bench = Bench::new();
    bench.samples("samples", &synthetic(200, 1));
    let fitted = bench.json("fit samples --clusters 4 --out table");
    assert_eq!(
        (&fitted["kind"], &fitted["model"], &fitted["clusters"]),
        (&"table".into(), &"toy".into(), &4.into())
    );
    assert_eq!(
        fitted["geometry"],
        serde_json::json!({"layers": 3, "experts": 16, "topK": 2})
    );
    assert_eq!(fitted["report"]["decodeSamples"], 200);
    assert!(fitted["digest"].as_str().unwrap().starts_with("sha256:"));
    assert!(fitted["fitSeconds"].is_number() && fitted["tau"].is_number() && fitted["baselines"]["skew"].is_number());
    let gain = fitted["report"]["predictedGain"].as_f64().unwrap();
    assert!(gain > 0.05, "domains with experts of their own gain, got {gain}");
    // The file says the same, but for the time of the fit.
    let mut inspected = bench.json("inspect table");
    inspected["fitSeconds"] = fitted["fitSeconds"].clone();
    assert_eq!(inspected, fitted);
    let text = bench.ok("inspect table");
    for line in [
        "digest ",
        "geometry             3x16 top-2",
        "clusters             4",
        "predicted gain ",
    ] {
        assert!(text.contains(line), "{line:?} in\n{text}");
    }
    assert_eq!(bench.files(), ["samples", "table"]);
}

#[test]
fn a_seed_gives_one_table_whatever_the_threads_or_the_way_in() {
    let bench = Bench::new();
    bench.samples("samples", &synthetic(300, 2));
    let mut digests = Vec::new();
    for threads in ["1", "4"] {
        let mut command = bench.command("fit samples --clusters 4 --seed 9 --out table --json");
        let output = command.env("RAYON_NUM_THREADS", threads).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        digests.push(told["digest"].as_str().unwrap().to_owned());
    }
    let mut piped = bench.command("fit - --clusters 4 --seed 9 --out piped --json");
    let output = piped
        .stdin(Stdio::from(File::open(bench.path("samples")).unwrap()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(bench.read("piped"), bench.read("table"));
    assert_eq!(digests[0], digests[1]);
    let other = bench.json("fit samples --clusters 4 --seed 10 --out other");
    assert_ne!(other["digest"], digests[0].as_str());
}

#[test]
fn every_option_reaches_the_table() {
    let bench = Bench::new();
    bench.samples("samples", &synthetic(120, 3));
    let fit = |options: &str| bench.json(&format!("fit samples --clusters 4 --out table {options}"));
    let usual = fit("");
    assert_eq!(fit("--layers all")["keptLayers"], serde_json::json!([0, 1, 2]));
    for (flag, name) in [
        ("count", "Count"),
        ("sqrt", "Sqrt"),
        ("binary", "Binary"),
        ("count-idf", "CountIdf"),
    ] {
        // Binary tells little where every request uses most experts; it is a transform all the same.
        assert_eq!(fit(&format!("--transform {flag} --layers all"))["transform"], name);
    }
    assert_eq!(fit("--tau 0.25")["tau"], 0.25);
    assert!(fit("--tau-quantile 0.9")["tau"].as_f64() > usual["tau"].as_f64());
    assert_eq!(
        fit("--held-out 0.5 --balance even --restarts 1")["baselines"]["requests"],
        60
    );
    assert!(usual["report"]["predictors"].is_object() && usual["predictorBytes"].as_u64() > Some(0));
    assert!(fit("--no-predictors")["report"]["predictors"].is_null());
    assert!(fit("--precision f32")["bytes"].as_u64() > usual["bytes"].as_u64());
}

#[test]
fn a_previous_table_keeps_its_numbers() {
    let bench = Bench::new();
    bench.samples("samples", &synthetic(400, 4));
    bench.samples("later", &synthetic(400, 5));
    bench.ok("fit samples --clusters 4 --layers all --out first");
    bench.ok("fit later --clusters 4 --layers all --seed 77 --previous first --out second");
    let compared = bench.json("diff first second --samples later");
    assert_eq!(compared["kind"], "difference");
    for pair in compared["clusters"].as_array().unwrap() {
        assert_eq!(pair["old"], pair["new"], "{compared}");
        assert!(pair["similarity"].as_f64().unwrap() > 0.85, "{compared}");
    }
    assert_eq!(
        (&compared["samples"]["compared"], &compared["samples"]["leftOut"]),
        (&400.into(), &0.into())
    );
    assert_eq!(compared["samples"]["moved"], compared["samples"]["movedAligned"]);
    assert!(compared["samples"]["moved"].as_u64().unwrap() < 20, "{compared}");
    let text = bench.ok("diff first second --samples later");
    assert!(
        text.contains("(same)") && text.contains("change their cluster number"),
        "{text}"
    );
    let same = bench.ok("diff first first");
    assert!(!same.contains("->"), "{same}");
}

#[test]
fn tables_of_other_clusters_and_layers_are_compared_too() {
    let bench = Bench::new();
    bench.samples("samples", &synthetic(200, 6));
    bench.ok("fit samples --clusters 4 --layers all --out four");
    bench.ok("fit samples --clusters 2 --layers greedy --transform count --out two");
    for (old, new, paired) in [("four", "two", 2), ("two", "four", 2)] {
        let compared = bench.json(&format!("diff {old} {new} --samples samples"));
        let clusters = compared["clusters"].as_array().unwrap();
        assert_eq!(
            clusters.iter().filter(|pair| !pair["old"].is_null()).count(),
            paired,
            "{compared}"
        );
        bench.ok(&format!("diff {old} {new}"));
    }
}

/// Changes when the fit, the table's bytes or the samples do, and on nothing else: then say so in the commit and put the new digest here.
const GOLDEN: &str = "sha256:39bd397b506558890a8bc76d6c72d1e0bfacc52e46f611dca1c7dcdf9c1a9a12";

#[test]
fn the_recorded_slice_gives_the_same_table_everywhere() {
    let bench = Bench::new();
    let slice = repository("locality/testdata/tiny-moe.samples");
    for threads in ["1", "4"] {
        let mut command = bench.command(&format!("fit {slice} --clusters 4 --out table --json"));
        let output = command.env("RAYON_NUM_THREADS", threads).output().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["digest"], GOLDEN, "{threads} threads");
    }
    let inspected = bench.json(&format!("inspect {slice}"));
    assert_eq!(
        (&inspected["samples"], &inspected["withNgrams"]),
        (&200.into(), &200.into())
    );
}
