use super::*;

#[test]
fn flags_that_cannot_work_are_64() {
    let bench = Bench::new();
    bench.samples("samples", &synthetic(40, 1));
    for args in [
        "",
        "frobnicate",
        "fit",
        "fit samples --out table",
        "fit samples --clusters 0 --out table",
        "fit samples --clusters 5000 --out table",
        "fit samples --clusters 4 --out table --held-out 0.9",
        "fit samples --clusters 4 --out table --tau 3",
        "fit samples --clusters 4 --out table --tau NaN",
        "fit samples --clusters 4 --out table --tau 0.1 --tau-quantile 0.5",
        "fit samples --clusters 4 --out table --layers some",
        "fit samples --clusters 4 --out table --max-samples 0",
        "evaluate table samples --batch 1",
        "export table --json",
        "--log =nonsense= inspect samples",
    ] {
        let (code, error) = bench.fails(args);
        assert!(code == 64 && !error.is_empty(), "{args}: {code} {error}");
    }
    assert_eq!(bench.files(), ["samples"]);
}

#[test]
fn input_that_cannot_work_is_65_and_names_the_file() {
    let bench = Bench::new();
    let samples = synthetic(40, 1);
    bench.samples("samples", &samples);
    bench.write("garbage", "this is no container of samples");
    let whole = bench.read("samples");
    bench.write("cut", &whole[..whole.len() - 9]);
    bench.write("broken.npz", b"PK\x03\x04 and then nothing of the kind");
    let mut mixed = samples;
    mixed[7].fingerprint.model = "other".into();
    bench.samples("mixed", &mixed);
    for (file, says) in [
        ("absent", "No such file"),
        (".", "folder"),
        ("garbage", "COTSAMPL"),
        ("cut", "cut after"),
        ("broken.npz", "npz"),
        ("mixed", "different models"),
    ] {
        let (code, error) = bench.fails(&format!("fit {file} --clusters 4 --out table"));
        assert!(code == 65 && error.contains(says), "{file}: {code} {error}");
    }
    let (code, error) = bench.fails("fit samples --clusters 39 --out table");
    assert!(
        code == 65 && error.contains("53 are needed for 39 clusters; collect more samples"),
        "{error}"
    );
    bench.samples("none", &[]);
    let (code, error) = bench.fails("fit none --clusters 4 --out table");
    assert!(code == 65 && error.contains("holds no samples"), "{error}");
    assert!(!bench.path("table").exists());
}

#[test]
fn what_fails_outside_is_75() {
    let bench = Bench::new();
    bench.samples("samples", &synthetic(40, 1));
    let (code, error) = bench.fails("fit samples --clusters 4 --out no/such/folder/table");
    assert!(code == 75 && error.contains("no/such/folder/table"), "{code} {error}");
}

#[test]
fn errors_are_json_too_where_json_is_asked_for() {
    let bench = Bench::new();
    let output = bench.command("inspect absent --json").output().unwrap();
    assert_eq!(code(&output), 65);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&told["error"]["exitCode"], &told["error"]["reason"]),
        (&65.into(), &"SamplesUnreadable".into())
    );
    assert!(told["error"]["message"].as_str().unwrap().contains("absent"));
}

#[test]
fn help_and_version_are_no_errors() {
    let bench = Bench::new();
    assert!(bench.ok("--help").contains("Exit codes"));
    assert!(bench.ok("--version").contains(env!("CARGO_PKG_VERSION")));
    for command in [
        "run", "collect", "fit", "inspect", "diff", "evaluate", "import", "export", "convert", "study",
    ] {
        assert!(bench.ok(&format!("{command} --help")).contains("Usage"), "{command}");
    }
}
