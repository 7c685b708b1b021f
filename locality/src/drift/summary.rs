//! What a router keeps of one slide, and how summaries of several routers and slides are put together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::table::MAX_CLUSTERS;

/// Most distinct reasons for a missing signature that a summary keeps.
const MAX_REASONS: usize = 32;

/// Requests without a signature, by reason.
pub type Missing = BTreeMap<String, u64>;

/// Statistics of the requests that finished routing in one slide under one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SlideSummary {
    /// Unix time divided by the slide's length, rounded down: the same number on every router.
    pub slide: u64,
    /// Digest of the table the signatures were scored with; empty without a table.
    pub digest: String,
    /// Requests routed.
    pub requests: u64,
    /// Of these, requests with a nonzero signature that was scored.
    pub signed: u64,
    /// Requests without a signature, by reason.
    pub missing: Missing,
    /// Signed requests nearest to each centroid (K values; weights make them fractional).
    pub cluster_counts: Vec<f64>,
    /// Sum over signed requests of the similarity to the nearest centroid.
    pub fit_sum: f64,
    /// Sum of the squares of those similarities.
    pub fit_sum_squares: f64,
}

/// Summaries that cannot be put together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SummaryError {
    /// A summary whose numbers contradict each other.
    #[error("slide summary: {0}")]
    Invalid(&'static str),
    /// Summaries of different tables or slides.
    #[error("slide summary: {what} differs: {got} and {expected}")]
    Differs {
        /// What differs.
        what: &'static str,
        /// Of the argument.
        got: String,
        /// Of the summary it was to be merged into.
        expected: String,
    },
}

impl SlideSummary {
    /// An empty summary for a table with `clusters` clusters.
    pub fn new(slide: u64, digest: impl Into<String>, clusters: usize) -> Self {
        Self {
            slide,
            digest: digest.into(),
            cluster_counts: vec![0.0; clusters],
            ..Self::default()
        }
    }

    /// Counts a request whose signature is nearest to `cluster` with this similarity.
    pub fn record_signed(&mut self, cluster: usize, similarity: f32) {
        self.requests += 1;
        if let Some(count) = self.cluster_counts.get_mut(cluster)
            && similarity.is_finite()
        {
            *count += 1.0;
            self.signed += 1;
            self.fit_sum += f64::from(similarity);
            self.fit_sum_squares += f64::from(similarity) * f64::from(similarity);
        }
    }

    /// Counts a request without a signature.
    pub fn record_missing(&mut self, reason: &str) {
        self.requests += 1;
        let known = self.missing.contains_key(reason) || self.missing.len() < MAX_REASONS;
        *self
            .missing
            .entry(if known { reason } else { "Other" }.to_owned())
            .or_default() += 1;
    }

    /// Checks numbers that came over the network.
    pub fn validate(&self) -> Result<(), SummaryError> {
        let sums = [self.fit_sum, self.fit_sum_squares];
        if self.cluster_counts.len() > MAX_CLUSTERS || self.missing.len() > MAX_REASONS + 1 {
            return Err(SummaryError::Invalid("too many clusters or reasons"));
        }
        if self.signed > self.requests {
            return Err(SummaryError::Invalid("more signed requests than requests"));
        }
        if self.cluster_counts.iter().any(|c| !c.is_finite() || *c < 0.0) || sums.iter().any(|s| !s.is_finite()) {
            return Err(SummaryError::Invalid("counts or sums are negative or not finite"));
        }
        Ok(())
    }

    /// Adds another router's summary of the same slide and table.
    pub fn merge(&mut self, other: &Self) -> Result<(), SummaryError> {
        if self.slide != other.slide {
            let (got, expected) = (other.slide.to_string(), self.slide.to_string());
            return Err(SummaryError::Differs {
                what: "slide",
                got,
                expected,
            });
        }
        self.add(other)
    }

    /// Adds another summary of the same table, of any slide.
    pub(super) fn add(&mut self, other: &Self) -> Result<(), SummaryError> {
        other.validate()?;
        if self.digest != other.digest {
            let (got, expected) = (other.digest.clone(), self.digest.clone());
            return Err(SummaryError::Differs {
                what: "table digest",
                got,
                expected,
            });
        }
        if self.cluster_counts.len() != other.cluster_counts.len() {
            let (got, expected) = (
                other.cluster_counts.len().to_string(),
                self.cluster_counts.len().to_string(),
            );
            return Err(SummaryError::Differs {
                what: "number of clusters",
                got,
                expected,
            });
        }
        self.requests = self.requests.saturating_add(other.requests);
        self.signed = self.signed.saturating_add(other.signed);
        for (reason, count) in &other.missing {
            let known = self.missing.contains_key(reason) || self.missing.len() < MAX_REASONS;
            let entry = self
                .missing
                .entry(if known { reason.as_str() } else { "Other" }.to_owned())
                .or_default();
            *entry = entry.saturating_add(*count);
        }
        self.cluster_counts
            .iter_mut()
            .zip(&other.cluster_counts)
            .for_each(|(a, b)| *a += b);
        self.fit_sum += other.fit_sum;
        self.fit_sum_squares += other.fit_sum_squares;
        Ok(())
    }
}

/// Merges the summaries of all routers into one per slide, ascending, keeping those of table `digest` only.
pub fn merge_slides(summaries: &[SlideSummary], digest: &str) -> Result<Vec<SlideSummary>, SummaryError> {
    let mut merged: BTreeMap<u64, SlideSummary> = BTreeMap::new();
    for summary in summaries.iter().filter(|s| s.digest == digest) {
        summary.validate()?;
        match merged.get_mut(&summary.slide) {
            Some(sum) => sum.merge(summary)?,
            None => {
                merged.insert(summary.slide, summary.clone());
            }
        }
    }
    Ok(merged.into_values().collect())
}

/// The window that ends with slide `last`: `slides_per_window` slides, lengthened backwards slide by slide, up to `max_slides`, until it
/// holds `min_requests` signed requests. `merged` is ascending, as [`merge_slides`] returns it; slides without traffic may be absent.
pub fn select_window(
    merged: &[SlideSummary],
    last: u64,
    slides_per_window: u64,
    max_slides: u64,
    min_requests: u64,
) -> &[SlideSummary] {
    let end = merged.partition_point(|s| s.slide <= last);
    let reach = |slides: u64| {
        merged
            .partition_point(|s| s.slide.saturating_add(slides) <= last)
            .min(end)
    };
    let mut start = reach(slides_per_window.max(1));
    let earliest = reach(max_slides.max(slides_per_window).max(1));
    let mut signed: u64 = merged.get(start..end).unwrap_or(&[]).iter().map(|s| s.signed).sum();
    while signed < min_requests && start > earliest {
        start -= 1;
        signed = signed.saturating_add(merged.get(start).map_or(0, |s| s.signed));
    }
    merged.get(start..end).unwrap_or(&[])
}
