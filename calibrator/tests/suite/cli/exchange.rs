use super::*;

const FIT_F: &str = r#"{"L":2,"e":3,"k":2,"variant":"count_idf","sig_dtype":"<i2","layer_mask":[1],"sig_idf":[2.0,0.0,0.5],"centroids":[[1,0,0],[0,0,1]]}"#;

#[test]
fn eldrs_file_comes_in_and_goes_out_unchanged() {
    let bench = Bench::new();
    bench.write("eldr.json", FIT_F);
    let told = bench.json("import eldr.json --top-k 1 --model toy --tau 0.2 --out table");
    assert_eq!(
        (&told["keptLayers"], &told["clusters"]),
        (&serde_json::json!([1]), &2.into())
    );
    let exported: Value = serde_json::from_str(&bench.ok("export table")).unwrap();
    let given: Value = serde_json::from_str(FIT_F).unwrap();
    for key in ["L", "e", "k", "variant", "sig_dtype", "layer_mask"] {
        assert_eq!(exported[key], given[key], "{key}");
    }
    assert_eq!(
        exported["centroids"],
        serde_json::json!([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    );
    let told = bench.json("export table --out out.json");
    assert_eq!((&told["kind"], &told["file"]), (&"exported".into(), &"out.json".into()));
    let again = bench.json("import out.json --top-k 1 --tau 0.2 --out again");
    assert_eq!(again["digest"], bench.json("inspect table")["digest"]);
}

#[test]
fn every_refusal_says_what_to_do() {
    let bench = Bench::new();
    let refusals: Vec<Value> =
        serde_json::from_str(include_str!("../../../../locality/tests/data/eldr-refusals.json")).unwrap();
    for case in refusals {
        let mut file: Value = serde_json::from_str(FIT_F).unwrap();
        for (key, value) in case["change"].as_object().unwrap() {
            file[key] = value.clone();
        }
        bench.write("eldr.json", file.to_string());
        let (code, error) = bench.fails("import eldr.json --top-k 1 --model toy --out table");
        assert_eq!(code, 65, "{case}: {error}");
        assert!(error.contains(case["says"].as_str().unwrap()), "{case}: {error}");
        let advice = error.trim().rsplit(". ").next().unwrap();
        let verbs = ["List ", "Give ", "Check ", "Fit ", "Set ", "Leave ", "Name ", "Each "];
        assert!(verbs.iter().any(|verb| advice.starts_with(verb)), "{case}: {error}");
        assert!(!bench.path("table").exists());
    }
    bench.write("eldr.json", FIT_F);
    for (flags, says) in [
        ("--top-k 9 --model toy", "--top-k 9"),
        ("--top-k 1", "--model"),
        ("--top-k 1 --model toy --tau 3", "--tau"),
    ] {
        let (code, error) = bench.fails(&format!("import eldr.json {flags} --out table"));
        assert!(code == 64 && error.contains(says), "{flags}: {code} {error}");
    }
}

#[test]
fn what_eldr_cannot_hold_is_refused_with_the_way_out() {
    let bench = Bench::new();
    bench.samples("samples", &synthetic(100, 1));
    bench.ok("fit samples --clusters 4 --transform sqrt --out table");
    let (code, error) = bench.fails("export table");
    assert!(
        code == 65 && error.contains("square-root") && error.contains("--transform count-idf"),
        "{error}"
    );
    bench.ok("fit samples --clusters 4 --transform count --layers all --out table");
    bench.ok("export table --out eldr.json");
    bench.ok("import eldr.json --top-k 2 --out back");
    bench.write("json", FIT_F);
    let (code, error) = bench.fails("inspect json");
    assert!(code == 65 && error.contains("COTSAMPL"), "{error}");
    let (_, error) = bench.fails("export json");
    assert!(error.contains("run `import`"), "{error}");
}
