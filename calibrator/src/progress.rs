//! Progress for whoever watches: a bar on a terminal; for services without one, a log line every tenth.

use std::{io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(120);

/// Counts up to a total, or shows that something goes on.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    what: &'static str,
    /// Log every so many where no bar shows; 0: never.
    step: u64,
}

impl Progress {
    /// Begins to count `what` up to `total`, for a service: bar or log.
    pub fn new(what: &'static str, total: u64) -> Self {
        let bar = visible(true, ProgressBar::new(total), "{msg} {wide_bar} {pos}/{len} {eta}");
        bar.set_length(total);
        bar.set_message(what);
        Self {
            bar,
            what,
            step: (total / 10).max(1),
        }
    }

    /// Begins to count `what` up to `total`, for a person: a bar or nothing. JSON goes without.
    pub fn bar(what: &'static str, total: u64, json: bool) -> Self {
        let bar = visible(!json, ProgressBar::new(total), "{msg} {wide_bar} {pos}/{len} {eta}");
        bar.set_message(what);
        Self { bar, what, step: 0 }
    }

    /// Shows that `what` goes on and counts what has been done.
    pub fn spinner(what: &'static str, json: bool) -> Self {
        let bar = visible(
            !json,
            ProgressBar::new_spinner(),
            "{spinner} {msg} {human_pos} {elapsed}",
        );
        if !bar.is_hidden() {
            bar.enable_steady_tick(TURN);
        }
        bar.set_message(what);
        Self { bar, what, step: 0 }
    }

    /// Counts one.
    pub fn tick(&self) {
        self.bar.inc(1);
        if self.step > 0 && self.bar.is_hidden() {
            let done = self.bar.position();
            if done.is_multiple_of(self.step) {
                tracing::info!(done, total = self.bar.length(), what = self.what, "progress");
            }
        }
    }
}

fn visible(wanted: bool, bar: ProgressBar, template: &str) -> ProgressBar {
    if !wanted || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
