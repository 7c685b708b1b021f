//! Progress for whoever watches: a bar on a terminal, a log line every tenth otherwise.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// Counts up to a total.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    what: &'static str,
    step: u64,
}

impl Progress {
    /// Begins to count `what` up to `total`.
    pub fn new(what: &'static str, total: u64) -> Self {
        let bar = if std::io::stderr().is_terminal() {
            ProgressBar::new(total)
        } else {
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
            bar.set_style(style);
        }
        bar.set_length(total);
        bar.set_message(what);
        Self {
            bar,
            what,
            step: (total / 10).max(1),
        }
    }

    /// Counts one.
    pub fn tick(&self) {
        self.bar.inc(1);
        let done = self.bar.position();
        if self.bar.is_hidden() && done.is_multiple_of(self.step) {
            tracing::info!(done, total = self.bar.length(), what = self.what, "progress");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
