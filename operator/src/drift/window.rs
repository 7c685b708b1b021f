//! All routers' statistics put together: which slides are complete, and what each held.

use coterie_crds::admin::{Slide, Source, StatisticsReport};
use coterie_locality::drift::{SlideSummary, SummaryError, merge_slides};

/// Slides of a window.
pub const SLIDES_PER_WINDOW: u64 = 4;
/// Slides that routers keep, so the longest that a window can become.
pub const MAX_SLIDES: u64 = 96;

/// Statistics of all routers.
#[derive(Clone, Debug, PartialEq)]
pub struct Combined {
    /// Summaries of all routers and tables, source Prefill: what tables state baselines of.
    pub summaries: Vec<SlideSummary>,
    /// Summaries of source Text.
    pub text: Vec<SlideSummary>,
    /// The newest slide that is over on every router.
    pub last_complete: u64,
}

/// Why the statistics cannot be judged now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// No router is ready.
    #[error("no router is ready")]
    NoRouter,
    /// Routers still work with an older window.
    #[error(
        "router statistics have slides of {got} ms, {wanted} ms wanted; waiting for the routing document to arrive"
    )]
    OtherWindow {
        /// Length that a router reports.
        got: u64,
        /// Length by the spec.
        wanted: u64,
    },
}

/// Puts reports together.
pub fn combine(reports: &[StatisticsReport], slide_ms: u64) -> Result<Combined, Unusable> {
    if let Some(other) = reports.iter().find(|r| r.slide_ms != slide_ms) {
        return Err(Unusable::OtherWindow {
            got: other.slide_ms,
            wanted: slide_ms,
        });
    }
    // The slowest clock decides when a slide is over.
    let now = reports.iter().map(|r| r.now_ms).min().ok_or(Unusable::NoRouter)?;
    let of = |source| {
        let slides = reports.iter().flat_map(|r| &r.slides);
        slides.filter(|s| s.source == source).map(summary).collect()
    };
    Ok(Combined {
        summaries: of(Source::Prefill),
        text: of(Source::Text),
        last_complete: (now / slide_ms.max(1)).saturating_sub(1),
    })
}

impl Combined {
    /// Slides of source Prefill scored under one table, one summary each, ascending.
    pub fn under(&self, digest: &str) -> Result<Vec<SlideSummary>, SummaryError> {
        merge_slides(&self.summaries, digest)
    }

    /// Summaries of one source, of the window that ends with the newest complete slide, under any table.
    pub fn newest_window(&self, source: Source) -> impl Iterator<Item = &SlideSummary> {
        let end = self.last_complete;
        let begin = end.saturating_sub(SLIDES_PER_WINDOW - 1);
        let all = match source {
            Source::Prefill => &self.summaries,
            Source::Text => &self.text,
        };
        all.iter().filter(move |s| (begin..=end).contains(&s.slide))
    }
}

fn summary(slide: &Slide) -> SlideSummary {
    SlideSummary {
        slide: slide.index,
        digest: slide.digest.clone().unwrap_or_default(),
        requests: slide.requests,
        signed: slide.signed,
        missing: slide.missing.clone(),
        cluster_counts: slide.cluster_counts.iter().map(|c| *c as f64).collect(),
        fit_sum: slide.fit_sum,
        fit_sum_squares: slide.fit_sum_squares,
    }
}
