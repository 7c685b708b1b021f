use super::*;

#[test]
fn a_recording_is_studied_on_the_half_that_no_fit_saw() {
    let bench = Bench::new();
    let recording = repository("engine-sim/recordings/tiny-moe.npz");
    let args = format!(
        "study {recording} --model tiny-moe --workers 4 --repeats 2 --batch 3,16,4096 --calibrated 60 --max-samples 260 --out page.md"
    );
    let told = bench.json(&args);
    assert_eq!((&told["kind"], &told["requests"]), (&"study".into(), &260.into()));
    assert!(told["blended"].as_u64().unwrap() > 5);
    let policies = told["policies"].as_array().unwrap();
    let find = |name: &str, batch: usize| {
        let policy = policies.iter().find(|policy| policy["policy"] == name).unwrap();
        policy["batches"][batch].clone()
    };
    // 130 requests do not fill 4 workers with 4096 each: such a batch is left out, not made up.
    assert_eq!(policies[0]["batches"].as_array().unwrap().len(), 2);
    assert_eq!(find("LeastLoaded", 1)["change"]["mean"], 0.0);
    let change = |name: &str, batch| find(name, batch)["change"]["mean"].as_f64().unwrap();
    assert!(change("LocalityBand, ours", 1) < -0.05 && change("Domain oracle", 1) < -0.02);
    // At low load the band does not pile requests up; ELDR's rule does.
    assert!(change("LocalityBand, ours", 0) < 0.01 && change("LocalityBand, ELDR's rule", 0) > 0.05);
    let kinds = find("LocalityBand, ours", 1)["kinds"].as_array().unwrap().len();
    assert_eq!(kinds, 12, "eleven domains, and blends apart");
    let learning = told["predictors"]["learning"].as_array().unwrap();
    assert!(
        learning
            .iter()
            .any(|row| row["on"] == "blended" && row["calibrated"] == 60),
        "{told}"
    );
    assert_eq!(
        told["predictors"]["unseen"].as_array().unwrap().len(),
        12,
        "eleven domains and their mean"
    );
    let page = text(&bench.read("page.md"));
    assert!(
        page.contains("| LeastLoaded |") && page.contains("| blended |"),
        "{page}"
    );
}

#[test]
fn a_seed_gives_one_study() {
    let bench = Bench::new();
    bench.samples("samples", &synthetic(80, 1));
    let args = "study samples --workers 2 --repeats 2 --batch 4 --calibrated 50";
    let told = bench.json(args);
    assert_eq!(bench.json(args), told);
    assert_eq!(
        told["predictors"]["unseen"].as_array().unwrap().len(),
        0,
        "no labels, no unseen domains"
    );
}

#[test]
fn too_few_requests_make_no_study() {
    let bench = Bench::new();
    bench.samples("few", &synthetic(20, 1));
    let (code, error) = bench.fails("study few");
    assert!(code == 65 && error.contains("a study needs 40"), "{error}");
    bench.samples("some", &synthetic(60, 1));
    let (code, error) = bench.fails("study some --batch 64 --workers 4");
    assert!(code == 65 && error.contains("smaller --batch"), "{error}");
}
