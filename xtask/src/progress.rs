//! What the person sees while work goes on: one line a step, with the time it took.

use std::{
    io::{IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

/// Prints steps on standard error, which keeps standard output for results; on a terminal the running one is live.
#[derive(Debug)]
pub(crate) struct Report {
    live: bool,
    /// Written to without a panic when nobody reads it any more.
    screen: std::io::Stderr,
}

impl Report {
    /// Live where a person watches.
    pub(crate) fn new() -> Self {
        let screen = std::io::stderr();
        Self {
            live: screen.is_terminal(),
            screen,
        }
    }

    /// Runs one step under its name.
    pub(crate) fn step<T>(&self, what: &str, work: impl FnOnce(&Step) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let step = Step::start(what, self.live);
        let result = work(&step);
        step.end(result.is_ok());
        result
    }

    /// A line that belongs to no step.
    pub(crate) fn say(&self, text: &str) {
        let _ = writeln!(&self.screen, "{text}");
    }

    /// A headline.
    pub(crate) fn head(&self, text: &str) {
        let _ = writeln!(&self.screen, "\n== {text}");
    }
}

/// A running step.
pub(crate) struct Step {
    what: String,
    bar: Option<ProgressBar>,
    start: Instant,
}

impl Step {
    fn start(what: &str, live: bool) -> Self {
        let bar = live.then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg:.dim}") {
                bar.set_style(style);
            }
            bar.set_prefix(what.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        if bar.is_none() {
            eprintln!("… {what}");
        }
        Self {
            what: what.to_owned(),
            bar,
            start: Instant::now(),
        }
    }

    /// Says what is being waited for, or how far it is.
    pub(crate) fn note(&self, text: impl Into<String>) {
        if let Some(bar) = &self.bar {
            bar.set_message(text.into());
        }
    }

    /// Says something worth a line of its own where the display is not live; else as [`Step::note`].
    pub(crate) fn milestone(&self, text: impl Into<String>) {
        let text = text.into();
        match &self.bar {
            Some(bar) => bar.set_message(text),
            None => eprintln!("  {} ({})", text, seconds(self.start.elapsed())),
        }
    }

    /// A line that stays, above the live display.
    pub(crate) fn keep(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }

    fn end(self, good: bool) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        eprintln!(
            "{} {} ({})",
            if good { "✓" } else { "✗" },
            self.what,
            seconds(self.start.elapsed())
        );
    }
}

/// A duration as people say it.
pub(crate) fn seconds(time: Duration) -> String {
    let all = time.as_secs();
    match all {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..120 => format!("{all} s"),
        _ => format!("{} min {} s", all / 60, all % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::seconds;
    use std::time::Duration;

    #[test]
    fn durations_read_naturally() {
        assert_eq!(seconds(Duration::from_millis(1234)), "1.2 s");
        assert_eq!(seconds(Duration::from_secs(75)), "75 s");
        assert_eq!(seconds(Duration::from_secs(683)), "11 min 23 s");
    }
}
