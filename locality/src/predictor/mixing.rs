//! How predictions are mixed, and how far they can be trusted.
//!
//! Weights are learned from calibration samples that the maps did not see: each sample alone, and whole regions of traffic at once, which
//! is what unknown text looks like. So they say what was best at this confidence, not what was best on average.

/// Most knots of a curve.
pub const MAX_KNOTS: usize = 16;

/// Share of each predictor in a mixture; they add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weights {
    /// The map of text.
    pub text: f32,
    /// The map of prefill frequencies.
    pub prefill: f32,
    /// The request's own prefill frequencies.
    pub own: f32,
    /// The mean of the calibrated requests.
    pub mean: f32,
}

impl Weights {
    pub(crate) fn from_array(w: [f32; 4]) -> Self {
        Self {
            text: w[0],
            prefill: w[1],
            own: w[2],
            mean: w[3],
        }
    }

    pub(crate) fn to_array(self) -> [f32; 4] {
        [self.text, self.prefill, self.own, self.mean]
    }
}

/// What is known of one prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Confidence {
    /// Share of the mixture that learned maps have, 0..1: near 0, calibration says nothing about this request.
    pub learned: f32,
    /// Share of the text, 0..1, in n-grams that calibration knows; absent without text or text map.
    pub known_text: Option<f32>,
    /// Squared distance of learned and own frequencies against what calibrated requests show: about 1 for them, several times that for
    /// unknown text; absent without prefill counts or learned map.
    pub disagreement: Option<f32>,
    /// The mixture.
    pub weights: Weights,
}

/// Weights along one measure, straight between knots, level outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    knots: Vec<f32>,
    weights: Vec<[f32; 4]>,
}

impl Curve {
    /// Knots ascend; one set of weights each. `None` without knots, with more than [`MAX_KNOTS`], or with weights that are no mixture.
    pub(crate) fn new(knots: Vec<f32>, weights: Vec<[f32; 4]>) -> Option<Self> {
        let sound = |w: &[f32; 4]| {
            w.iter().all(|v| (-1e-6..=1.0 + 1e-4).contains(v)) && (w.iter().sum::<f32>() - 1.0).abs() < 1e-3
        };
        let fits = (1..=MAX_KNOTS).contains(&knots.len())
            && knots.len() == weights.len()
            && knots.iter().all(|k| k.is_finite())
            && knots.windows(2).all(|w| w[0] < w[1])
            && weights.iter().all(sound);
        fits.then_some(Self { knots, weights })
    }

    /// Where weights are given, ascending.
    pub fn knots(&self) -> &[f32] {
        &self.knots
    }

    /// Weights of text, prefill, own and mean at each knot.
    pub fn knot_weights(&self) -> &[[f32; 4]] {
        &self.weights
    }

    /// Weights at `x`.
    pub fn at(&self, x: f32) -> Weights {
        let after = self.knots.iter().take_while(|k| **k < x).count();
        let level = |i: usize| Weights::from_array(self.weights.get(i).copied().unwrap_or_default());
        let Some(before) = after.checked_sub(1) else {
            return level(0);
        };
        let (Some(low), Some(high)) = (self.knots.get(before), self.knots.get(after)) else {
            return level(before);
        };
        let share = (x - low) / (high - low);
        let (a, b) = (level(before).to_array(), level(after).to_array());
        Weights::from_array(std::array::from_fn(|i| a[i] + share * (b[i] - a[i])))
    }
}

/// Mixtures for what a request may come with. A curve is absent where its predictors are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mixing {
    /// Text only: text map and mean, by known share of the text.
    pub text: Option<Curve>,
    /// Prefill counts only: prefill map, own frequencies and mean, by ln disagreement.
    pub prefill: Option<Curve>,
    /// Text and prefill counts: all four, by ln disagreement.
    pub both: Option<Curve>,
    /// Mean squared error per cell of the learned maps on samples they did not see: the part of disagreement that is not own noise.
    pub map_error: f32,
}
