//! The law of a decode step, T = base + per expert x distinct experts + per request x load, learned from observed steps.

/// Observations that count, the older ones fading.
const MEMORY: f64 = 2_000.0;
/// How many observations the prior stands for.
const PRIOR: f64 = 10.0;
/// Shares of a mean step before anything is known of them: base, experts, requests.
const PRIOR_SHARES: [f64; 3] = [0.25, 0.65, 0.10];
/// Residuals beyond this many mean residuals count less.
const ROBUST: f64 = 3.0;

/// Coefficients in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepLaw {
    /// Time of an empty step.
    pub base: f64,
    /// More for each distinct expert, summed over layers.
    pub per_expert: f64,
    /// More for each request.
    pub per_request: f64,
}

impl StepLaw {
    /// How much more all requests of a worker wait per step, together, when a request comes to `load` others that use `distinct` experts and
    /// it brings `more`.
    pub(super) fn marginal(&self, distinct: f64, more: f64, load: f64) -> f64 {
        let now = self.base + self.per_expert * distinct + self.per_request * load;
        let rise = self.per_expert * more + self.per_request;
        now + (load + 1.0) * rise
    }
}

/// Least squares with forgetting, pulled to the prior shape of the mean step: where observations cannot tell the parts apart (all at one
/// load), the prior does.
#[derive(Clone, Debug, Default)]
pub(super) struct StepTime {
    /// Sums of weight x feature x feature for (1, distinct, load).
    squares: [[f64; 3]; 3],
    /// Sums of weight x feature x seconds.
    products: [f64; 3],
    /// Sum of weight x seconds.
    seconds: f64,
    /// Mean absolute residual.
    residual: f64,
    law: Option<StepLaw>,
}

impl StepTime {
    /// The law; before any observation one of the prior shape, in unknown units of time, at a batch of `load` with `distinct` experts.
    pub(super) fn law(&self, distinct: f64, load: f64) -> StepLaw {
        self.law.unwrap_or(StepLaw {
            base: PRIOR_SHARES[0],
            per_expert: PRIOR_SHARES[1] / distinct.max(1.0),
            per_request: PRIOR_SHARES[2] / load.max(1.0),
        })
    }

    pub(super) fn learned(&self) -> Option<StepLaw> {
        self.law
    }

    /// Takes one observation; what is no positive time at a real load is ignored.
    pub(super) fn observe(&mut self, distinct: f64, load: f64, seconds: f64) {
        let sane = seconds.is_finite() && seconds > 0.0 && load.is_finite() && load >= 1.0;
        if !sane || !distinct.is_finite() || distinct <= 0.0 {
            return;
        }
        let features = [1.0, distinct, load];
        let weight = self.weight(features, seconds);
        let keep = 1.0 - 1.0 / MEMORY;
        for (row, a) in self.squares.iter_mut().zip(features) {
            for (cell, b) in row.iter_mut().zip(features) {
                *cell = *cell * keep + weight * a * b;
            }
        }
        for (sum, x) in self.products.iter_mut().zip(features) {
            *sum = *sum * keep + weight * x * seconds;
        }
        self.seconds = self.seconds * keep + weight * seconds;
        self.law = self.solve();
    }

    /// Less for an observation far off the law: a stalled stream says nothing about steps.
    fn weight(&mut self, features: [f64; 3], seconds: f64) -> f64 {
        let Some(law) = self.law else {
            self.residual = seconds * 0.1;
            return 1.0;
        };
        let expected = law.base * features[0] + law.per_expert * features[1] + law.per_request * features[2];
        let off = (seconds - expected).abs();
        let limit = (ROBUST * self.residual).max(seconds.min(expected) * 0.01);
        // A residual grows no faster than by its limit, so that one stall does not open the door to the next.
        self.residual += (off.min(limit) - self.residual) / 100.0;
        if off > limit { limit / off } else { 1.0 }
    }

    fn solve(&self) -> Option<StepLaw> {
        let count = self.squares[0][0];
        if count <= 0.0 {
            return None;
        }
        let scale = [1.0, self.squares[0][1] / count, self.squares[0][2] / count];
        let step = self.seconds / count;
        // In units of the mean step and the mean features, so that numbers are near 1 whatever the model and the engine.
        let mut matrix = [[0.0; 3]; 3];
        let mut right = [0.0; 3];
        for i in 0..3 {
            for j in 0..3 {
                matrix[i][j] = self.squares[i][j] / (scale[i] * scale[j]);
            }
            matrix[i][i] += PRIOR;
            right[i] = self.products[i] / (scale[i] * step) + PRIOR * PRIOR_SHARES[i];
        }
        let shares = non_negative(&matrix, &right)?;
        Some(StepLaw {
            base: shares[0] * step,
            per_expert: shares[1] * step / scale[1],
            per_request: shares[2] * step / scale[2],
        })
    }
}

/// Least squares solution with no negative part: the best of the solutions with some parts held at zero. The part of experts is never held.
fn non_negative(matrix: &[[f64; 3]; 3], right: &[f64; 3]) -> Option<[f64; 3]> {
    let mut best: Option<(f64, [f64; 3])> = None;
    for free in [
        [true, true, true],
        [false, true, true],
        [true, true, false],
        [false, true, false],
    ] {
        let Some(x) = solve(matrix, right, free) else { continue };
        if x.iter().any(|v| !v.is_finite() || *v < 0.0) {
            continue;
        }
        let mut value = 0.0;
        for i in 0..3 {
            value -= 2.0 * right[i] * x[i];
            for j in 0..3 {
                value += x[i] * matrix[i][j] * x[j];
            }
        }
        if best.is_none_or(|(lowest, _)| value < lowest) {
            best = Some((value, x));
        }
    }
    best.map(|(_, x)| x)
}

/// Gaussian elimination; the matrix is positive definite. Parts that are not free are zero.
fn solve(matrix: &[[f64; 3]; 3], right: &[f64; 3], free: [bool; 3]) -> Option<[f64; 3]> {
    let mut m = [[0.0; 4]; 3];
    for i in 0..3 {
        for j in 0..3 {
            m[i][j] = if free[i] && free[j] {
                matrix[i][j]
            } else {
                f64::from(u8::from(i == j))
            };
        }
        m[i][3] = if free[i] { right[i] } else { 0.0 };
    }
    for i in 0..3 {
        let pivot = m[i][i];
        if pivot <= 1e-12 {
            return None;
        }
        let row = m[i].map(|v| v / pivot);
        for (k, other) in m.iter_mut().enumerate() {
            let factor = other[i];
            for (cell, v) in other.iter_mut().zip(row) {
                *cell = if k == i { v } else { *cell - factor * v };
            }
        }
    }
    Some([m[0][3], m[1][3], m[2][3]])
}
