//! A router's table that moves with the traffic: blindly at intervals, as ELDR does, or when the drift monitor says so.

use std::collections::VecDeque;

use coterie_locality::drift::{DriftState, SlideSummary, Thresholds, Verdict, judge, merge_slides, select_window};
use coterie_locality::{CentroidTable, kmeans};

/// When centroids are fitted anew. The transform stays, as in ELDR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refit {
    /// Every so often, on the requests of a window.
    Blind {
        /// Seconds of requests that a fit sees.
        window_s: f64,
        /// Seconds between fits.
        every_s: f64,
    },
    /// When skew or fit of a window has been off for two slides; on the requests since then.
    OnSignal {
        /// Seconds of a window; it slides by a quarter.
        window_s: f64,
        /// Seconds without another fit after one.
        cooldown_s: f64,
    },
}

/// Slides in a row that a signal must be on.
const SUSTAIN: u32 = 2;
/// Requests that a fit on signal needs at least.
const ENOUGH: usize = 200;

pub(super) struct Refitter {
    refit: Refit,
    window: VecDeque<(f64, u32)>,
    first: Option<f64>,
    last: f64,
    generation: u64,
    slides: Vec<SlideSummary>,
    state: DriftState,
    /// Fits made.
    pub(super) fits: u32,
}

impl Refitter {
    pub(super) fn new(refit: Refit) -> Self {
        Self {
            refit,
            window: VecDeque::new(),
            first: None,
            last: 0.0,
            generation: 0,
            slides: Vec::new(),
            state: DriftState::default(),
            fits: 0,
        }
    }

    /// Takes a request with its scores. `true`: the table has new centroids.
    pub(super) fn seen(
        &mut self,
        now: f64,
        row: u32,
        scores: &[f32],
        signatures: &[f32],
        table: &mut CentroidTable,
    ) -> bool {
        self.window.push_back((now, row));
        let first = *self.first.get_or_insert(now);
        let since = match self.refit {
            Refit::Blind { window_s, every_s } => {
                let oldest = now - window_s;
                while self.window.front().is_some_and(|(at, _)| *at < oldest) {
                    self.window.pop_front();
                }
                let due = now - first >= window_s && now - self.last >= every_s;
                due.then_some(oldest)
            }
            Refit::OnSignal { window_s, cooldown_s } => self.on_signal(now, window_s / 4.0, cooldown_s, scores, table),
        };
        let Some(since) = since else { return false };
        let dim = table.transform.dim();
        let rows: Vec<f32> = (self.window.iter())
            .filter(|(at, _)| *at >= since)
            .filter_map(|(_, row)| signatures.get(*row as usize * dim..(*row as usize + 1) * dim))
            .flatten()
            .copied()
            .collect();
        let least = if matches!(self.refit, Refit::Blind { .. }) {
            0
        } else {
            ENOUGH * dim
        };
        rows.len() >= least && self.fit(now, &rows, table)
    }

    fn fit(&mut self, now: f64, rows: &[f32], table: &mut CentroidTable) -> bool {
        let (dim, clusters) = (table.transform.dim(), table.clusters());
        let Ok(found) = kmeans::refit(rows, dim, &table.centroids) else {
            return false;
        };
        table.centroids = found.centroids;
        self.last = now;
        self.fits += 1;
        self.generation += 1;
        if matches!(self.refit, Refit::OnSignal { .. }) {
            // The new table's own baselines, on what it was fitted on.
            let samples = (rows.len() / dim).max(1) as f64;
            table.baselines.fit_mean = found.objective;
            table.baselines.requests = samples as u64;
            let mut counts = vec![0.0; clusters];
            for label in &found.labels {
                counts[*label as usize] += 1.0;
            }
            let busiest = counts.iter().copied().fold(0.0, f64::max);
            table.baselines.skew = busiest * clusters as f64 / samples;
            self.slides.clear();
        }
        true
    }

    /// Keeps the slides' statistics; the time since when requests are to be fitted, if the verdict asks for it.
    fn on_signal(
        &mut self,
        now: f64,
        slide_s: f64,
        cooldown_s: f64,
        scores: &[f32],
        table: &CentroidTable,
    ) -> Option<f64> {
        let slide = (now / slide_s) as u64;
        let digest = self.generation.to_string();
        let nearest = coterie_locality::nearest(scores)?;
        let new_slide = self.slides.last().is_some_and(|s| s.slide != slide);
        let verdict = if new_slide {
            self.verdict(slide - 1, &digest, table)
        } else {
            Verdict::Stable
        };
        if self.slides.last().is_none_or(|s| s.slide != slide) {
            self.slides.push(SlideSummary::new(slide, digest, table.clusters()));
        }
        if let Some(last) = self.slides.last_mut() {
            last.record_signed(nearest.cluster, nearest.similarity);
        }
        // Requests older than a few windows are never fitted on.
        let oldest = now - 16.0 * slide_s;
        while self.window.front().is_some_and(|(at, _)| *at < oldest) {
            self.window.pop_front();
        }
        let cool = self.fits == 0 || now - self.last >= cooldown_s;
        (verdict == Verdict::Drifted && cool).then(|| self.state.onset().unwrap_or(slide) as f64 * slide_s)
    }

    fn verdict(&mut self, last: u64, digest: &str, table: &CentroidTable) -> Verdict {
        let Ok(merged) = merge_slides(&self.slides, digest) else {
            return Verdict::Stable;
        };
        let window = select_window(&merged, last, 4, 16, Thresholds::default().min_requests);
        let signals = judge(&table.baselines, window, &Thresholds::default());
        self.state.advance(digest, last, &signals, SUSTAIN)
    }
}
