//! A histogram with fixed buckets.

/// Counts of observations by upper bound, with their sum.
#[derive(Clone, Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
    total: u64,
}

impl Histogram {
    /// An empty histogram with these upper bounds, ascending.
    pub fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len()],
            sum: 0.0,
            total: 0,
        }
    }

    /// Adds an observation.
    pub fn observe(&mut self, value: f64) {
        if let Some(bucket) = self.bounds.iter().position(|bound| value <= *bound) {
            self.counts[bucket] += 1;
        }
        self.sum += value;
        self.total += 1;
    }

    /// Upper bounds with the observations at or below each.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut below = 0;
        self.bounds.iter().zip(&self.counts).map(move |(bound, count)| {
            below += count;
            (*bound, below)
        })
    }

    /// Number of observations.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Sum of observations.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Mean of observations; 0 if there are none.
    pub fn mean(&self) -> f64 {
        if self.total == 0 {
            0.0
        } else {
            self.sum / self.total as f64
        }
    }

    /// The upper bound of the bucket with the given quantile (the last bound if it lies beyond); None if there are no observations.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = (q * self.total as f64).ceil().max(1.0) as u64;
        if self.total == 0 {
            return None;
        }
        self.cumulative()
            .find(|(_, below)| *below >= rank)
            .map(|(bound, _)| bound)
            .or(self.bounds.last().copied())
    }
}
