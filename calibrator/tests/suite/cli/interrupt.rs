use std::io::{BufRead, BufReader};

use super::*;

/// Sends a signal once the process says that it works on the fit, and returns the exit code.
fn interrupted(bench: &Bench, signal: &str) -> i32 {
    let args = "--log info fit samples --clusters 16 --restarts 1000 --no-predictors --out table";
    let mut child = bench
        .command(args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let working = log.find(|line| line.as_ref().is_ok_and(|line| line.contains("fitting")));
    assert!(working.is_some(), "the log says when the fit begins");
    let sent = Command::new("kill")
        .args(["-s", signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    child.wait().unwrap().code().expect("an exit code, not a signal")
}

#[test]
fn a_signal_ends_a_long_fit_and_leaves_no_file() {
    let bench = Bench::new();
    // Thousands of restarts over thousands of samples: minutes, if it were let finish.
    bench.samples("samples", &synthetic(6000, 1));
    for signal in ["INT", "TERM"] {
        assert_eq!(interrupted(&bench, signal), 130);
        assert_eq!(bench.files(), ["samples"]);
    }
}
