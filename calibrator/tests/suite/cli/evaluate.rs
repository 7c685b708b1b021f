use super::*;

#[test]
fn a_table_is_weighed_against_others() {
    let bench = Bench::new();
    bench.samples("samples", &synthetic(240, 1));
    bench.samples("held-out", &synthetic(240, 2));
    bench.write("labels", labels(240));
    bench.ok("fit samples --clusters 4 --out good");
    // A band that takes everybody in is least load.
    bench.ok("fit samples --clusters 4 --tau 2 --out blind");
    let args = "evaluate good held-out --domains labels --batch 12,16 --repeats 3 --against blind";
    let told = bench.json(args);
    assert_eq!(
        (&told["kind"], &told["samples"], &told["workers"]),
        (&"evaluation".into(), &240.into(), &4.into())
    );
    assert!(told["rho"]["value"].as_f64().unwrap() > 0.3, "{told}");
    let batches = told["batches"].as_array().unwrap();
    assert_eq!(batches.len(), 2);
    for batch in batches {
        let of = |name: &str| batch[name]["mean"].as_f64().unwrap();
        assert!(
            of("table") < of("leastLoaded") && of("domainOracle") < of("leastLoaded"),
            "{batch}"
        );
        assert!(of("gain") > 0.02 && of("gainOverAgainst") > 0.02, "{batch}");
        assert!(batch["table"]["standardError"].as_f64().unwrap() < 0.5);
    }
    let ways = told["predictors"].as_array().unwrap();
    let error = |way: &str| {
        ways.iter().find(|found| found["way"] == way).unwrap()["error"]["mean"]
            .as_f64()
            .unwrap()
    };
    assert!(error("mixedPrefill") < error("mean"), "{told}");
    assert_eq!(bench.json(args), told, "the same seed gives the same numbers");
    let text = bench.ok("evaluate good held-out --repeats 2");
    assert!(text.contains("least loaded") && text.contains("rho"), "{text}");
    // Batches that the samples cannot fill are told as the size that they could.
    let small = bench.json("evaluate good held-out --batch 4096 --repeats 2");
    assert_eq!(small["batches"][0]["batch"], 60);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let bench = Bench::new();
    let samples = synthetic(60, 1);
    bench.samples("samples", &samples);
    bench.ok("fit samples --clusters 4 --out table");
    let mut other = samples.clone();
    for sample in &mut other {
        sample.fingerprint.model = "other".into();
    }
    bench.samples("other", &other);
    let (code, error) = bench.fails("evaluate table other");
    assert!(
        code == 65 && error.contains("other 3x16") && error.contains("one model"),
        "{error}"
    );
    let mut bare = samples;
    for sample in &mut bare {
        sample.decode_counts = None;
    }
    bench.samples("bare", &bare);
    let (code, error) = bench.fails("evaluate table bare");
    assert!(code == 65 && error.contains("0 of 60 samples"), "{error}");
    bench.write("labels", "c\nde\n");
    let (code, error) = bench.fails("evaluate table samples --domains labels");
    assert!(code == 65 && error.contains("2 labels for the 60 samples"), "{error}");
}
