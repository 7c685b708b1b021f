//! What the router remembers of its requests: statistics of every one, and a sample of them for calibration. Never any text.

mod reservoir;
mod slides;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coterie_crds::admin;
use coterie_locality::{Sample, Source, score::Nearest};

use crate::{clock::Clock, dialect::MissingSignature, routing::Active};
use reservoir::Reservoir;
use slides::{Slides, Under};

/// How a request came out of signing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// With a signature; its nearest centroid where there is a table.
    Signed(Option<Nearest>),
    Missing(MissingSignature),
}

/// Slides and reservoir.
#[derive(Debug)]
pub(crate) struct Statistics {
    slides: Mutex<Slides>,
    reservoir: Mutex<Reservoir>,
}

impl Statistics {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            slides: Mutex::default(),
            reservoir: Mutex::new(Reservoir::new(seed)),
        }
    }

    /// Counts a request that reached the choice of a decode worker.
    pub(crate) fn count(&self, active: &Active, source: Source, outcome: Outcome) {
        let table = active.table.as_ref();
        let clusters = table
            .and_then(|t| t.table.source(source))
            .map_or(0, |part| part.clusters());
        lock(&self.slides).record(
            Clock::unix_ms(),
            slide_ms(active),
            &Under {
                digest: table.map(|t| t.digest.as_str()),
                source: match source {
                    Source::Prefill => admin::Source::Prefill,
                    Source::Text => admin::Source::Text,
                },
                clusters,
            },
            outcome,
        );
    }

    /// Offers a finished request's sample.
    pub(crate) fn sample(&self, active: &Active, sample: Sample) {
        let most = usize::try_from(active.document.statistics.max_samples).unwrap_or(usize::MAX);
        lock(&self.reservoir).offer(sample, most);
    }

    pub(crate) fn report(&self, active: Option<&Active>) -> admin::StatisticsReport {
        let now_ms = Clock::unix_ms();
        match active {
            None => admin::StatisticsReport {
                now_ms,
                ..admin::StatisticsReport::default()
            },
            Some(active) => lock(&self.slides).report(now_ms, slide_ms(active)),
        }
    }

    /// Samples of requests that finished at or after `since_ms`, newest first, at most `limit`, weighted by the requests they stand for.
    pub(crate) fn samples(&self, since_ms: u64, limit: usize) -> (Vec<Arc<Sample>>, f32) {
        lock(&self.reservoir).since(since_ms, limit)
    }

    pub(crate) fn kept_samples(&self) -> usize {
        lock(&self.reservoir).len()
    }
}

fn slide_ms(active: &Active) -> u64 {
    (active.document.statistics.window_ms / 4).max(1)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
