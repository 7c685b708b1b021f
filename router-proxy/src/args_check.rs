//! Values of flags that would start a router which cannot serve: refused at the start, by the flag's name.

use std::time::Duration;

use anyhow::{Result, bail, ensure};

use crate::args::Args;

/// Fewest milliseconds of the statistics' window: it slides by a quarter.
const MIN_WINDOW: Duration = Duration::from_millis(4);

/// Checks what the parser does not.
pub(crate) fn check(args: &Args) -> Result<()> {
    let limits = &args.limits;
    ensure!(limits.max_requests >= 1, "--max-requests must be at least 1");
    ensure!(limits.max_connections >= 1, "--max-connections must be at least 1");
    ensure!(limits.max_attempts >= 1, "--max-attempts must be at least 1");
    ensure!(limits.max_body_bytes >= 1, "--max-body-bytes must be at least 1");
    ensure!(limits.max_answer_bytes >= 1, "--max-answer-bytes must be at least 1");
    for (flag, value) in [
        ("--header-timeout", limits.header_timeout),
        ("--body-timeout", limits.body_timeout),
        ("--connect-timeout", limits.connect_timeout),
        ("--prefill-timeout", limits.prefill_timeout),
        ("--first-byte-timeout", limits.first_byte_timeout),
        ("--answer-timeout", limits.answer_timeout),
        ("--idle-timeout", limits.idle_timeout),
        ("--scrape-interval", limits.scrape_interval),
    ] {
        ensure!(!value.is_zero(), "{flag} must be longer than 0s");
    }
    if let Some(path) = &args.document
        && let Err(error) = std::fs::File::open(path)
    {
        bail!("--document {}: {error}", path.display());
    }
    if args.deployment.is_none() && args.document.is_none() {
        fleet(args)?;
    }
    Ok(())
}

/// The flags that make the routing document.
fn fleet(args: &Args) -> Result<()> {
    let fleet = &args.fleet;
    for (flag, value) in [
        ("--layers", fleet.layers),
        ("--experts", fleet.experts),
        ("--top-k", fleet.top_k),
        ("--min-candidates", fleet.min_candidates),
    ] {
        ensure!(value >= 1, "{flag} must be at least 1");
    }
    ensure!(
        fleet.top_k <= fleet.experts,
        "--top-k {} is more than --experts {}",
        fleet.top_k,
        fleet.experts
    );
    if let Some(tau) = fleet.tau {
        ensure!((0.0..=2.0).contains(&tau), "--tau must be a number from 0 to 2");
    }
    for (flag, value) in [
        ("--max-load-ratio", fleet.max_load_ratio),
        ("--load-factor", fleet.load_factor),
    ] {
        ensure!(
            value.is_finite() && value >= 1.0,
            "{flag} must be a number of at least 1"
        );
    }
    ensure!(fleet.window >= MIN_WINDOW, "--window must be at least 4ms");
    // What is left, such as a model of more layers than counts can hold.
    if let Err(error) = crate::discovery::files::document(args) {
        bail!("--model, --layers, --experts, --top-k or --load-factor: {error}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn values_that_cannot_work_are_refused_with_the_flag() {
        for (flag, value) in [
            ("--tau", "7"),
            ("--tau", "NaN"),
            ("--layers", "0"),
            ("--layers", "4000000000"),
            ("--top-k", "65"),
            ("--max-load-ratio", "NaN"),
            ("--load-factor", "0.5"),
            ("--window", "0s"),
            ("--document", "/nowhere/document.json"),
            ("--max-requests", "0"),
            ("--max-connections", "0"),
            ("--max-attempts", "0"),
            ("--scrape-interval", "0s"),
        ] {
            let args = Args::try_parse_from(["coterie-router", "--decode", "h:80", flag, value]).unwrap();
            let refused = check(&args).unwrap_err().to_string();
            assert!(refused.contains(flag), "{flag} {value}: {refused}");
        }
        check(&Args::try_parse_from(["coterie-router", "--decode", "h:80"]).unwrap()).unwrap();
    }
}
