//! A bar on standard error, where that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of `runs` steps.
pub(super) fn bar(runs: usize, what: &str) -> ProgressBar {
    let bar = ProgressBar::new(runs as u64);
    // The template is a constant: without it the bar looks plainer.
    if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} runs, {eta} left") {
        bar.set_style(style);
    }
    bar.set_prefix(what.to_owned());
    bar
}
