//! The window of signatures, and when a fit starts.

use std::collections::VecDeque;

use crate::kmeans;
use crate::table::NORM_TOLERANCE;
use crate::transform::normalise;

/// When to fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RefitOptions {
    /// Seconds that a signature counts, and that must pass from the first one to the first fit.
    pub window: f64,
    /// Least seconds between the starts of two fits.
    pub interval: f64,
}

impl Default for RefitOptions {
    /// The artifact's defaults.
    fn default() -> Self {
        Self {
            window: 5.0,
            interval: 2.5,
        }
    }
}

/// What a re-fit refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefitError {
    /// An option out of range.
    #[error("re-fit: {0} must be a positive number of seconds")]
    Option(&'static str),
    /// Centroids that are no unit vectors of one length.
    #[error("re-fit: invalid centroids: {0}")]
    Centroids(&'static str),
    /// A signature of another length or with a value that is no finite number.
    #[error("re-fit: a signature must be {expected} finite numbers")]
    Signature {
        /// Length of a centroid.
        expected: usize,
    },
}

/// Centroids with the signatures that move them.
#[derive(Clone, Debug)]
pub struct Refit {
    options: RefitOptions,
    dim: usize,
    centroids: Vec<f32>,
    /// Signatures with their times, oldest first.
    rows: VecDeque<(f64, Box<[f32]>)>,
    first: Option<f64>,
    last_start: Option<f64>,
    running: bool,
    started: u64,
    completed: u64,
    last_error: Option<String>,
}

/// A fit to be run: takes a while, needs nothing else.
#[derive(Clone, Debug, PartialEq)]
pub struct FitJob {
    rows: Vec<f32>,
    centroids: Vec<f32>,
    dim: usize,
}

impl FitJob {
    /// Balanced K-means from the current centroids, numbered like them.
    pub fn run(&self) -> Result<Vec<f32>, String> {
        match kmeans::refit(&self.rows, self.dim, &self.centroids) {
            Ok(fitted) => Ok(fitted.centroids),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Refit {
    /// Starts with these centroids, K unit vectors of `dim` values.
    pub fn new(centroids: Vec<f32>, dim: usize, options: RefitOptions) -> Result<Self, RefitError> {
        for (name, value) in [("window", options.window), ("interval", options.interval)] {
            if !value.is_finite() || value <= 0.0 {
                return Err(RefitError::Option(name));
            }
        }
        check(&centroids, dim, centroids.len()).map_err(RefitError::Centroids)?;
        Ok(Self {
            options,
            dim,
            centroids,
            rows: VecDeque::new(),
            first: None,
            last_start: None,
            running: false,
            started: 0,
            completed: 0,
            last_error: None,
        })
    }

    /// Takes a routed request's signature at `now` (seconds, never falling), and gives a fit to run where one is due. Old signatures leave;
    /// one of zeros says nothing and is not kept.
    pub fn offer(&mut self, signature: &[f32], now: f64) -> Result<Option<FitJob>, RefitError> {
        if signature.len() != self.dim || signature.iter().any(|v| !v.is_finite()) {
            return Err(RefitError::Signature { expected: self.dim });
        }
        while self.rows.front().is_some_and(|(at, _)| *at < now - self.options.window) {
            self.rows.pop_front();
        }
        let mut row: Box<[f32]> = signature.into();
        if normalise(&mut row) <= 0.0 {
            return Ok(None);
        }
        self.rows.push_back((now, row));
        let first = *self.first.get_or_insert(now);
        let full = now - first >= self.options.window && self.rows.len() >= self.clusters();
        let waited = self.last_start.is_none_or(|last| now - last >= self.options.interval);
        if self.running || !full || !waited {
            return Ok(None);
        }
        self.running = true;
        self.started += 1;
        self.last_start = Some(now);
        Ok(Some(FitJob {
            rows: self.rows.iter().flat_map(|(_, row)| row.iter().copied()).collect(),
            centroids: self.centroids.clone(),
            dim: self.dim,
        }))
    }

    /// Takes what the running fit came to: new centroids, or why there are none; then the old ones stay.
    pub fn finish(&mut self, fit: Result<Vec<f32>, String>) {
        if !std::mem::take(&mut self.running) {
            return;
        }
        let checked = fit.and_then(|centroids| match check(&centroids, self.dim, self.centroids.len()) {
            Ok(()) => Ok(centroids),
            Err(problem) => Err(format!("invalid centroids: {problem}")),
        });
        match checked {
            Ok(centroids) => {
                self.centroids = centroids;
                self.completed += 1;
                self.last_error = None;
            }
            Err(error) => self.last_error = Some(error),
        }
    }

    /// As if a fit were running.
    #[cfg(test)]
    pub(super) fn running_again(&mut self) {
        self.running = true;
    }

    /// K.
    pub fn clusters(&self) -> usize {
        self.centroids.len() / self.dim
    }

    /// Values of a signature.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Unit vectors, K x D row-major.
    pub fn centroids(&self) -> &[f32] {
        &self.centroids
    }

    /// Signatures in the window, oldest first.
    pub fn window(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.rows.iter().map(|(_, row)| row.as_ref())
    }

    /// Fits started and fits taken into use.
    pub fn fits(&self) -> (u64, u64) {
        (self.started, self.completed)
    }

    /// Why the last fit was not taken into use.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }
}

fn check(centroids: &[f32], dim: usize, expected: usize) -> Result<(), &'static str> {
    if dim == 0 || centroids.is_empty() || !centroids.len().is_multiple_of(dim) || centroids.len() != expected {
        return Err("another number of values");
    }
    let unit = |row: &[f32]| (crate::score::dot(row, row).sqrt() - 1.0).abs() <= NORM_TOLERANCE;
    if centroids.chunks_exact(dim).all(unit) {
        Ok(())
    } else {
        Err("not unit vectors")
    }
}
