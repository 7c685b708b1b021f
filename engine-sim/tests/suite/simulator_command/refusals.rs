//! Bad arguments.

use super::{bad, run_fails};

#[test]
fn bad_values_are_refused_with_a_reason() {
    let usage: [&[&str]; 14] = [
        &["--fault", "30:explode:2"],
        &["--arrivals", "weekly"],
        &["--output", "lognormal:1"],
        &["--mix", "domain-0"],
        &["--step-base-ms=-1"],
        &["--step-base-ms", "nan"],
        &["--workers", "0"],
        &["--rate", "0"],
        &["--hand-off-ms", "5"],
        &["--model", "qwen3-30b-a3b"],
        &["--gpu", "mi300x"],
        &["--placement", "metro"],
        &["--reports-every", "1", "--exchange-every", "1"],
        &["--every=-3"],
    ];
    for args in usage {
        let (code, error) = run_fails(args);
        let name = args[0].split('=').next().unwrap();
        assert!(code == 2 && error.contains(name), "{args:?}: {error}");
    }
    let reasons: [(&[&str], &str); 11] = [
        (&["--fault", "1:stop:3"], "numbered 0 to 2"),
        (&["--batch", "0"], "--batch"),
        (&["--mix", "nowhere=1"], "domain-0"),
        (&["--arrivals", "day-night:60:2"], "swing"),
        (&["--turns", "0.5"], "turns"),
        (&["--model", "gpt-9", "--gpu", "mi300x"], "Qwen3-30B-A3B"),
        (&["--model", "qwen3-30b-a3b", "--gpu", "h100"], "MI355X"),
        (&["--model", "qwen3-30b-a3b", "--gpu", "mi300x"], "generate:48x128x8"),
        (&["--ranks", "5"], "shared equally"),
        (&["--ranks", "4", "--redundant", "2"], "no copies"),
        (
            &[
                "--step-base-ms",
                "0",
                "--step-per-expert-ms",
                "0",
                "--step-per-request-ms",
                "0",
            ],
            "some time",
        ),
    ];
    for (args, reason) in reasons {
        let (code, error) = run_fails(args);
        assert!(code == 1 && error.contains(reason), "{args:?}: {error}");
    }
    let (code, error) = bad(&["run", "--gates", "no-such.npz"]);
    assert!(code == 1 && error.contains("no-such.npz"), "{error}");
    let (_, error) = bad(&["run", "--gates", "generate:tiny"]);
    assert!(error.contains("LAYERSxEXPERTSxTOPK"), "{error}");
}
