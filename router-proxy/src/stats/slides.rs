//! Statistics of every request, a slide at a time.

use std::collections::VecDeque;

use coterie_crds::admin::{Slide, Source, StatisticsReport};

use super::Outcome;

/// Slides that are kept: 24 windows of four.
const KEPT_SLIDES: u64 = 96;
/// Most entries: table swaps begin further entries of the same slide.
const MAX_ENTRIES: usize = 256;

/// What a request was compared with: requests are counted together only where this is the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Under<'a> {
    /// Digest of the table, if there was one.
    pub(super) digest: Option<&'a str>,
    pub(super) source: Source,
    /// Clusters of the source.
    pub(super) clusters: usize,
}

/// Slides, oldest first.
#[derive(Debug, Default)]
pub(super) struct Slides {
    slide_ms: u64,
    slides: VecDeque<Slide>,
}

impl Slides {
    /// Counts one request.
    pub(super) fn record(&mut self, now_ms: u64, slide_ms: u64, under: &Under<'_>, outcome: Outcome) {
        let slide = self.current(now_ms, slide_ms, under);
        slide.requests += 1;
        match outcome {
            Outcome::Missing(reason) => *slide.missing.entry(reason.as_str().to_owned()).or_default() += 1,
            Outcome::Signed(nearest) => {
                slide.signed += 1;
                if let Some(nearest) = nearest
                    && let Some(count) = slide.cluster_counts.get_mut(nearest.cluster)
                {
                    *count += 1;
                    let similarity = f64::from(nearest.similarity);
                    slide.fit_sum += similarity;
                    slide.fit_sum_squares += similarity * similarity;
                }
            }
        }
    }

    pub(super) fn report(&mut self, now_ms: u64, slide_ms: u64) -> StatisticsReport {
        self.set_length(slide_ms);
        self.forget(now_ms / self.slide_ms);
        StatisticsReport {
            slide_ms: self.slide_ms,
            now_ms,
            slides: self.slides.iter().cloned().collect(),
        }
    }

    /// Indices count slides of one length: with another length all are forgotten.
    fn set_length(&mut self, slide_ms: u64) {
        let slide_ms = slide_ms.max(1);
        if self.slide_ms != slide_ms {
            self.slide_ms = slide_ms;
            self.slides.clear();
        }
    }

    fn forget(&mut self, index: u64) {
        while let Some(oldest) = self.slides.front()
            && (oldest.index.saturating_add(KEPT_SLIDES) <= index || self.slides.len() > MAX_ENTRIES)
        {
            self.slides.pop_front();
        }
    }

    fn current(&mut self, now_ms: u64, slide_ms: u64, under: &Under<'_>) -> &mut Slide {
        self.set_length(slide_ms);
        let index = now_ms / self.slide_ms;
        // The clock may step back: what came before stays where it was counted.
        let known = self
            .slides
            .iter()
            .rposition(|s| s.index == index && s.source == under.source && s.digest.as_deref() == under.digest);
        let at = known.unwrap_or_else(|| {
            let at = self.slides.partition_point(|s| s.index <= index);
            self.slides.insert(
                at,
                Slide {
                    index,
                    digest: under.digest.map(str::to_owned),
                    source: under.source,
                    cluster_counts: vec![0; under.clusters],
                    ..Slide::default()
                },
            );
            at
        });
        let before = self.slides.len();
        self.forget(index);
        let at = at.saturating_sub(before - self.slides.len());
        if self.slides.is_empty() {
            self.slides.push_back(Slide::default());
        }
        let last = self.slides.len() - 1;
        &mut self.slides[at.min(last)]
    }
}

#[cfg(test)]
mod tests {
    use coterie_locality::score::Nearest;

    use super::*;
    use crate::dialect::MissingSignature;

    fn under(digest: Option<&str>, clusters: usize) -> Under<'_> {
        Under {
            digest,
            source: Source::Prefill,
            clusters,
        }
    }

    fn near(cluster: usize, similarity: f32) -> Outcome {
        Outcome::Signed(Some(Nearest { cluster, similarity }))
    }

    #[test]
    fn requests_are_counted_by_slide_table_and_outcome() {
        let mut slides = Slides::default();
        slides.record(1_000, 100, &under(Some("a"), 2), near(1, 0.5));
        slides.record(1_099, 100, &under(Some("a"), 2), near(1, 1.0));
        slides.record(
            1_050,
            100,
            &under(Some("a"), 2),
            Outcome::Missing(MissingSignature::Malformed),
        );
        slides.record(1_060, 100, &under(Some("b"), 3), near(2, 0.25));
        slides.record(1_250, 100, &under(None, 0), Outcome::Signed(None));
        let report = slides.report(1_300, 100);
        assert_eq!((report.slide_ms, report.now_ms, report.slides.len()), (100, 1_300, 3));
        let first = &report.slides[0];
        assert_eq!((first.index, first.requests, first.signed), (10, 3, 2));
        assert_eq!(first.cluster_counts, [0, 2]);
        assert_eq!((first.fit_sum, first.fit_sum_squares), (1.5, 1.25));
        assert_eq!(first.missing["Malformed"], 1);
        assert_eq!(report.slides[1].digest.as_deref(), Some("b"));
        assert_eq!((report.slides[2].index, report.slides[2].signed), (12, 1));
    }

    #[test]
    fn slides_are_bounded_and_a_new_length_starts_afresh() {
        let mut slides = Slides::default();
        for index in 0..300 {
            slides.record(index * 100, 100, &under(None, 0), Outcome::Signed(None));
        }
        let report = slides.report(29_900, 100);
        assert_eq!(report.slides.len(), 96);
        assert_eq!(report.slides[95].index, 299);
        for swap in 0..1_000 {
            slides.record(29_900, 100, &under(Some(&swap.to_string()), 1), near(0, 1.0));
        }
        assert!(slides.report(29_900, 100).slides.len() <= MAX_ENTRIES);
        assert!(slides.report(29_900, 50).slides.is_empty());
    }

    #[test]
    fn a_clock_that_steps_back_loses_nothing() {
        let mut slides = Slides::default();
        slides.record(5_000, 100, &under(None, 0), Outcome::Signed(None));
        slides.record(4_000, 100, &under(None, 0), Outcome::Signed(None));
        slides.record(4_000, 100, &under(None, 0), Outcome::Signed(None));
        let report = slides.report(5_000, 100);
        assert_eq!(
            report.slides.iter().map(|s| (s.index, s.requests)).collect::<Vec<_>>(),
            [(40, 2), (50, 1)]
        );
    }
}
