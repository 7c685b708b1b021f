//! Locality band: among the workers whose similarity is within tau of the best, the least loaded, under a load guard.

use rand::RngCore;

use super::{Candidates, Decision, Policy, Reason, Ties, ties};

/// Parameters of the band. ELDR's rules are `max_load_ratio: None`, `ties: LowestIndex` and `min_candidates` 1 (`v1`) or 2 (`min2_v1`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalityBand {
    /// Width of the band in cosine units.
    pub tau: f32,
    /// The band is filled up with the next most similar workers to this size, when tau is above 0.
    pub min_candidates: usize,
    /// Load guard, at least 1; `None`: no guard. A worker is allowed while load + 1 <= ceil((total + 1) / workers) + earned, with
    /// earned = floor((ratio - 1) x (mean - 1)).
    ///
    /// A share of the mean, so that busy workers have room to gather what belongs together. While the mean is below 4 / (ratio - 1) a worker
    /// may besides be ahead of the least loaded by (ratio - 1) / 2 of the mean only, rounded down: a request more costs about 1 / load of a
    /// step, more than the band saves. So the band vanishes at low load, where the rule is least-loaded with similarity deciding between
    /// equals, and widens with it.
    pub max_load_ratio: Option<f32>,
    /// Equal loads inside the band.
    pub ties: Ties,
}

/// Low load is a mean below this many times 1 / (ratio - 1).
const LOW_LOAD: f64 = 4.0;

/// A parameter out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("locality band: {0}")]
pub struct LocalityBandError(&'static str);

impl LocalityBand {
    /// Checks the parameters: tau 0..=2, at least one candidate, ratio finite and at least 1.
    pub fn new(tau: f32, min_candidates: usize, max_load_ratio: Option<f32>) -> Result<Self, LocalityBandError> {
        if !tau.is_finite() || !(0.0..=2.0).contains(&tau) {
            return Err(LocalityBandError("tau must be a number from 0 to 2"));
        }
        if min_candidates == 0 {
            return Err(LocalityBandError("minCandidates must be at least 1"));
        }
        if max_load_ratio.is_some_and(|ratio| !ratio.is_finite() || ratio < 1.0) {
            return Err(LocalityBandError("maxLoadRatio must be a number of at least 1"));
        }
        Ok(Self {
            tau,
            min_candidates,
            max_load_ratio,
            ties: Ties::Spread,
        })
    }

    /// Highest load a worker may have before the request. The least loaded are always allowed, whatever fractions reports leave.
    fn load_limit(&self, loads: &[f32]) -> f32 {
        let Some(ratio) = self.max_load_ratio else {
            return f32::INFINITY;
        };
        let sum = loads.iter().map(|l| f64::from(*l)).sum::<f64>();
        let workers = loads.len().max(1) as f64;
        let even = ((sum + 1.0) / workers).ceil() - 1.0;
        let earned = (f64::from(ratio - 1.0) * (sum / workers - 1.0)).floor().max(0.0);
        let mean = sum / workers;
        let least = f64::from(loads.iter().copied().fold(f32::INFINITY, f32::min));
        let ahead = if mean * f64::from(ratio - 1.0) < LOW_LOAD {
            (mean * f64::from(ratio - 1.0) / 2.0).floor()
        } else {
            f64::INFINITY
        };
        // Loads are f32; the least loaded must stay allowed.
        ((even + earned).min(least + ahead) as f32).max(least as f32)
    }

    /// Similarity a worker needs to be in the band of workers that `allowed` accepts, and the best similarity among those.
    fn threshold(&self, similarity: &[f32], allowed: impl Fn(usize) -> bool) -> Option<(f32, f32)> {
        let mut best = f32::NEG_INFINITY;
        for (worker, s) in similarity.iter().enumerate() {
            if allowed(worker) && *s > best {
                best = *s;
            }
        }
        (best > f32::NEG_INFINITY).then_some((best - self.tau, best))
    }

    /// The guard refused the whole band: the same rule among the workers that it allows, whose best similarity anchors a new band.
    fn outside_band(
        &self,
        similarity: &[f32],
        loads: &[f32],
        allowed: impl Fn(usize) -> bool,
        rng: &mut dyn RngCore,
    ) -> Option<(usize, usize, Reason)> {
        let (threshold, _) = self.threshold(similarity, &allowed)?;
        let reach = |w: &usize| allowed(*w) && similarity.get(*w).is_some_and(|s| *s >= threshold);
        let (worker, band) = ties::least_loaded(loads, (0..loads.len()).filter(reach), self.ties, rng)?;
        Some((worker, band, Reason::BandWidened))
    }

    /// Lowers the threshold until `min_candidates` workers reach it.
    fn widened_to_minimum(&self, similarity: &[f32], threshold: f32) -> f32 {
        let wanted = self.min_candidates.min(similarity.len());
        let reaching = similarity.iter().filter(|s| **s >= threshold).count();
        if self.tau <= 0.0 || reaching >= wanted {
            return threshold;
        }
        let mut lowered = threshold;
        for _ in reaching..wanted {
            lowered = similarity
                .iter()
                .copied()
                .filter(|s| *s < lowered)
                .fold(f32::NEG_INFINITY, f32::max);
            if similarity.iter().filter(|s| **s >= lowered).count() >= wanted {
                break;
            }
        }
        lowered
    }

    /// Workers of the band before any load is looked at, ascending. With ties at the border of `min_candidates` the lower index comes in.
    pub fn band(&self, similarity: &[f32]) -> Vec<usize> {
        let Some((threshold, _)) = self.threshold(similarity, |_| true) else {
            return Vec::new();
        };
        let border = self.widened_to_minimum(similarity, threshold);
        (0..similarity.len())
            .filter(|w| self.in_band(similarity, *w, threshold, border))
            .collect()
    }

    /// A worker reaches the tau threshold, or is one of the next ones that fill the band up.
    fn in_band(&self, similarity: &[f32], worker: usize, threshold: f32, border: f32) -> bool {
        let Some(s) = similarity.get(worker).copied() else {
            return false;
        };
        if s >= threshold || s > border {
            return true;
        }
        if s < border {
            return false;
        }
        let above = similarity.iter().filter(|o| **o > border).count();
        let equals_before = similarity.iter().take(worker).filter(|o| **o == border).count();
        above + equals_before < self.min_candidates
    }
}

impl Policy for LocalityBand {
    fn choose(&self, candidates: &Candidates<'_>, rng: &mut dyn RngCore) -> Option<Decision> {
        let loads = candidates.loads;
        let all = 0..loads.len();
        let Some(similarity) = candidates.usable_similarity() else {
            let (worker, band) = ties::least_loaded(loads, all, self.ties, rng)?;
            return Some(Decision::by_load(worker, band, Reason::NoSignature));
        };
        let (threshold, best) = self.threshold(similarity, |_| true)?;
        let border = self.widened_to_minimum(similarity, threshold);
        let limit = self.load_limit(loads);
        let allowed = |w: usize| loads.get(w).is_some_and(|l| *l <= limit);
        let members = all
            .clone()
            .filter(|w| allowed(*w) && self.in_band(similarity, *w, threshold, border));
        let inside = ties::least_loaded(loads, members, self.ties, rng).map(|(w, band)| (w, band, Reason::Band));
        let (worker, band, reason) = match inside {
            Some(chosen) => chosen,
            None => self.outside_band(similarity, loads, allowed, rng)?,
        };
        Some(Decision {
            worker,
            band,
            best_similarity: Some(best),
            chosen_similarity: similarity.get(worker).copied(),
            spilled: reason == Reason::BandWidened,
            distinct_experts: None,
            reason,
        })
    }
}
