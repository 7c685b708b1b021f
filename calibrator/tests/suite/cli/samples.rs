use super::{npz::Array, *};

/// One request of 2 layers of 3 experts, top 1, in ELDR's form.
fn eldr(metadata: &[&str]) -> Vec<u8> {
    let requests = 12;
    let counts = |tokens: u16| (0..requests).flat_map(move |at| [tokens, 0, 0, 0, at % tokens, tokens - at % tokens]);
    let mut arrays = vec![
        Array::u16("prefill_counts", &[12, 2, 3], counts(5)),
        Array::u16("prompt_tokens", &[12], vec![5; 12]),
        Array::u16("decode_counts", &[12, 2, 3], counts(7)),
        Array::u16("decode_tokens", &[12], vec![7; 12]),
    ];
    if !metadata.is_empty() {
        arrays.push(Array::text("metadata", &[], metadata));
    }
    npz::archive(&arrays)
}

#[test]
fn eldrs_calibration_data_are_fitted_as_they_are() {
    let bench = Bench::new();
    bench.write("calibration.npz", eldr(&[r#"{"model": "toy", "top_k": 1}"#]));
    let fitted = bench.json("fit calibration.npz --clusters 2 --out table");
    assert_eq!(
        (&fitted["model"], &fitted["report"]["samples"]),
        (&"toy".into(), &12.into())
    );
    bench.write("bare.npz", eldr(&[]));
    let (code, error) = bench.fails("fit bare.npz --clusters 2 --out other");
    assert!(code == 65 && error.contains("--top-k"), "{code} {error}");
    let (code, error) = bench.fails("fit bare.npz --clusters 2 --top-k 1 --out other");
    assert!(code == 64 && error.contains("--model"), "{code} {error}");
    bench.ok("fit bare.npz --clusters 2 --top-k 1 --model toy --out other");
    let inspected = bench.json("inspect calibration.npz");
    assert_eq!(
        (&inspected["kind"], &inspected["form"], &inspected["samples"]),
        (&"samples".into(), &"eldrNpz".into(), &12.into())
    );
}

/// A damage to a recording.
type Change = fn(&mut Vec<Array>);

/// Two requests of 1 layer, 4 experts, top 2; three tokens generated.
fn recording(change: impl FnOnce(&mut Vec<Array>)) -> Vec<u8> {
    let mut arrays = vec![
        Array::u16("prefill", &[2, 1, 4], [3, 2, 1, 0, 0, 4, 4, 0]),
        Array::u16("decode", &[2, 3, 1, 2], [0, 1, 0, 1, 0, 2, 1, 2, 1, 2, 1, 3]),
        Array::u16("prompt_tokens", &[2], [3, 4]),
        Array::text("domain", &[2], &["c", "c+fr"]),
    ];
    change(&mut arrays);
    npz::archive(&arrays)
}

#[test]
fn a_recording_of_gates_becomes_a_container_and_labels() {
    let bench = Bench::new();
    bench.write("gates.npz", recording(|_| {}));
    let told = bench.json("convert gates.npz --model toy --out samples --domains-out labels");
    assert_eq!(
        (&told["form"], &told["domains"]),
        (&"gatesNpz".into(), &serde_json::json!({"c": 1, "c+fr": 1}))
    );
    assert_eq!(bench.read("labels"), b"c\nc+fr\n");
    let samples = bench.read_samples("samples");
    assert_eq!(samples[1].prefill_counts.as_ref().unwrap().cells(), [0, 4, 4, 0]);
    assert_eq!(samples[0].decode_counts.as_ref().unwrap().cells(), [3, 2, 1, 0]);
    assert_eq!((samples[0].prompt_tokens, samples[0].generated_tokens), (3, 3));
    let (code, error) = bench.fails("convert gates.npz --out other");
    assert!(code == 64 && error.contains("--model"), "{error}");
    assert_eq!(bench.files(), ["gates.npz", "labels", "samples"]);
}

#[test]
fn recordings_that_contradict_themselves_are_refused() {
    let bench = Bench::new();
    let cases: [(&str, Change); 6] = [
        ("prompt_tokens is missing", |arrays| {
            arrays.retain(|array| array.name != "prompt_tokens");
        }),
        ("[N, L, E]", |arrays| arrays[0].shape = vec![2, 4]),
        ("other requests or layers", |arrays| {
            arrays[2] = Array::u16("prompt_tokens", &[3], [1, 2, 3]);
        }),
        ("expert", |arrays| {
            arrays[1] = Array::u16("decode", &[2, 1, 1, 2], [0, 1, 2, 9]);
        }),
        ("one text for each request", |arrays| {
            arrays[3] = Array::text("domain", &[1], &["c"]);
        }),
        ("bytes of data", |arrays| arrays[0].data.truncate(3)),
    ];
    for (says, change) in cases {
        bench.write("gates.npz", recording(change));
        let (code, error) = bench.fails("convert gates.npz --model toy --out samples");
        assert!(code == 65 && error.contains(says), "{says}: {code} {error}");
    }
}

#[test]
fn more_samples_than_asked_for_leave_a_seeded_choice() {
    let bench = Bench::new();
    bench.samples("all", &synthetic(100, 1));
    bench.write("labels", labels(100));
    bench.ok("convert all --max-samples 30 --seed 5 --out some --domains labels --domains-out kept");
    bench.ok("convert all --max-samples 30 --seed 5 --out again");
    bench.ok("convert all --max-samples 30 --seed 6 --out others");
    let some = bench.read_samples("some");
    assert_eq!(some.len(), 30);
    assert!(some.is_sorted_by_key(|sample| sample.time_unix_ms));
    assert_eq!(bench.read("some"), bench.read("again"));
    assert_ne!(bench.read("some"), bench.read("others"));
    // Labels stay with their samples.
    let kept = text(&bench.read("kept"));
    for (sample, label) in some.iter().zip(kept.lines()) {
        let at = (sample.time_unix_ms - 1_796_000_000_000) as usize;
        assert_eq!(label, DOMAINS[at % 4]);
    }
    let (code, error) = bench.fails("convert all --out x --domains-out y");
    assert!(code == 65 && error.contains("--domains FILE"), "{error}");
    assert!(!bench.path("x").exists());
}

#[test]
fn a_container_is_counted_without_being_kept() {
    let bench = Bench::new();
    bench.samples("samples", &synthetic(20, 1));
    bench.write("labels", labels(20));
    let told = bench.json("inspect samples --domains labels");
    for (key, value) in [
        ("samples", 20),
        ("withPrefillCounts", 20),
        ("withDecodeCounts", 20),
        ("withNgrams", 0),
        ("generatedTokens", 1200),
    ] {
        assert_eq!(told[key], value, "{key}");
    }
    assert_eq!(told["domains"]["zh"], 5);
    assert_eq!(told["models"][0]["geometry"]["experts"], 16);
    assert!(bench.ok("inspect samples").contains("toy 3x16 top-2 (20)"));
    bench.samples("none", &[]);
    assert_eq!(bench.json("inspect none")["samples"], 0);
}
