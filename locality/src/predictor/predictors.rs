//! All predictors of a table, and the mixture of what a request comes with.

use pulp::{Arch, NullaryFnOnce};

use super::frequencies::own_frequencies;
use super::maps::{PrefillMap, TextMap};
use super::mixing::{Confidence, Mixing, Weights};
use super::ngrams::NgramCounter;
use crate::counts::ActivationCounts;
use crate::geometry::Geometry;

/// Disagreements below this are all the same.
const LEAST_DISAGREEMENT: f32 = 1e-3;

/// What was learned about one model's traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictors {
    /// Geometry of all frequencies.
    pub(crate) geometry: Geometry,
    /// Mean decode frequencies of calibrated requests [L, E].
    pub(crate) mean: Vec<f32>,
    /// Map of text.
    pub(crate) text: Option<TextMap>,
    /// Map of prefill frequencies.
    pub(crate) prefill: Option<PrefillMap>,
    /// How they are mixed.
    pub(crate) mixing: Mixing,
}

/// What a request comes with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence<'a> {
    /// Its text.
    pub text: Option<&'a NgramCounter>,
    /// Its prefill counts.
    pub prefill: Option<&'a ActivationCounts>,
}

/// Room for intermediate frequencies, made once and used for every request.
#[derive(Clone, Debug)]
pub struct Scratch {
    own: Vec<f32>,
    mapped: Vec<f32>,
}

impl Scratch {
    /// Room for this geometry.
    pub fn new(geometry: &Geometry) -> Self {
        Self {
            own: vec![0.0; geometry.cells()],
            mapped: vec![0.0; geometry.cells()],
        }
    }
}

/// Why nothing was predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PredictError {
    /// Counts, scratch or output of another geometry.
    #[error("predict: {what} of {got} cells given, the predictors are for {expected}")]
    Length {
        /// What does not fit.
        what: &'static str,
        /// Cells given.
        got: usize,
        /// Cells expected.
        expected: usize,
    },
    /// The table has no text map.
    #[error("predict: the table has no map of text; calibrate with samples that have text and decode counts")]
    NoTextMap,
}

impl Predictors {
    /// Predictors without any learned map: own frequencies where there are prefill counts, else the mean [L, E].
    pub fn mean_only(geometry: &Geometry, mean: Vec<f32>) -> Option<Self> {
        let sound = mean.len() == geometry.cells() && mean.iter().all(|v| v.is_finite() && *v >= 0.0);
        sound.then(|| Self {
            geometry: *geometry,
            mean,
            text: None,
            prefill: None,
            mixing: Mixing::default(),
        })
    }

    /// Geometry of all frequencies.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Mean decode frequencies of calibrated requests [L, E].
    pub fn mean(&self) -> &[f32] {
        &self.mean
    }

    /// The map of text, if one was learned.
    pub fn text(&self) -> Option<&TextMap> {
        self.text.as_ref()
    }

    /// The map of prefill frequencies, if one was learned.
    pub fn prefill(&self) -> Option<&PrefillMap> {
        self.prefill.as_ref()
    }

    /// How predictions are mixed.
    pub fn mixing(&self) -> &Mixing {
        &self.mixing
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        let text = self.text.as_ref().map_or(0, TextMap::bytes);
        let prefill = self.prefill.as_ref().map_or(0, |p| p.map().bytes());
        self.mean.len() * 4 + text + prefill
    }

    /// Writes what the text map alone says to `out` [L, E]: what signatures of source Text are made from. Returns the known share of the
    /// text. Does not allocate.
    pub fn text_into(&self, text: &NgramCounter, out: &mut [f32]) -> Result<f32, PredictError> {
        self.fits("output", out.len())?;
        let map = self.text.as_ref().ok_or(PredictError::NoTextMap)?;
        Ok(map.predict(text, &self.geometry, out))
    }

    /// Writes what the prefill map alone says to `out` [L, E]. `false` without a map, without tokens, or for counts or room of another
    /// geometry.
    pub fn prefill_into(&self, prefill: &ActivationCounts, out: &mut [f32]) -> bool {
        let cells = self.mean.len();
        let fits = out.len() == cells && prefill.cells().len() == cells && prefill.tokens() > 0;
        let map = self.prefill.as_ref().filter(|_| fits);
        if let Some(map) = map {
            map.predict(prefill, &self.geometry, out);
        }
        map.is_some()
    }

    /// Writes the decode frequencies [L, E] to expect of a request to `out`: per token, not negative, top-k per layer in sum. Does not
    /// allocate. Counts without tokens are no evidence; without any evidence the mean is written.
    pub fn predict_into(
        &self,
        evidence: Evidence<'_>,
        scratch: &mut Scratch,
        out: &mut [f32],
    ) -> Result<Confidence, PredictError> {
        self.fits("output", out.len())?;
        self.fits("scratch", scratch.own.len())?;
        self.fits("scratch", scratch.mapped.len())?;
        let prefill = evidence.prefill.filter(|p| p.tokens() > 0);
        if let Some(counts) = prefill {
            self.fits("prefill counts", counts.cells().len())?;
        }
        let mut confidence = Confidence::default();
        let text = evidence.text.zip(self.text.as_ref());
        if let Some((text, map)) = text {
            confidence.known_text = Some(map.predict(text, &self.geometry, out));
        }
        let Some(counts) = prefill else {
            return Ok(self.without_prefill(confidence, out));
        };
        own_frequencies(counts, &mut scratch.own);
        if let Some(map) = &self.prefill {
            map.predict(counts, &self.geometry, &mut scratch.mapped);
        }
        let (curve, shares) = match (text.is_some(), self.prefill.is_some()) {
            (true, true) => (&self.mixing.both, [0.5, 0.5]),
            (false, true) => (&self.mixing.prefill, [0.0, 1.0]),
            _ => (&None, [0.0, 0.0]),
        };
        let Some(curve) = curve else {
            out.copy_from_slice(&scratch.own);
            confidence.weights.own = 1.0;
            return Ok(confidence);
        };
        let learned = Inputs {
            text: if text.is_some() { out } else { &scratch.mapped },
            prefill: &scratch.mapped,
            own: &scratch.own,
        };
        let disagreement = self.disagreement(&learned, shares, counts.tokens());
        let weights = curve.at(disagreement.ln());
        confidence.disagreement = Some(disagreement);
        confidence.weights = weights;
        confidence.learned = weights.text + weights.prefill;
        Arch::new().dispatch(Mix {
            out,
            has_text: text.is_some(),
            scratch,
            mean: &self.mean,
            weights,
        });
        Ok(confidence)
    }

    fn without_prefill(&self, mut confidence: Confidence, out: &mut [f32]) -> Confidence {
        let Some(known) = confidence.known_text else {
            out.copy_from_slice(&self.mean);
            confidence.weights.mean = 1.0;
            return confidence;
        };
        let weights = match &self.mixing.text {
            Some(curve) => curve.at(known),
            None => Weights {
                text: 1.0,
                ..Weights::default()
            },
        };
        if weights.mean > 0.0 {
            for (value, mean) in out.iter_mut().zip(&self.mean) {
                *value = weights.text * *value + weights.mean * mean;
            }
        }
        confidence.weights = weights;
        confidence.learned = weights.text;
        confidence
    }

    /// Squared distance of the learned and the own frequencies, against own sampling noise and the maps' usual error.
    pub(super) fn disagreement(&self, inputs: &Inputs<'_>, shares: [f32; 2], tokens: u64) -> f32 {
        let (distance, variance) = Arch::new().dispatch(Distance { inputs, shares });
        let expected = variance / tokens.max(1) as f32 + self.mixing.map_error * self.mean.len() as f32;
        (distance / expected.max(f32::MIN_POSITIVE)).max(LEAST_DISAGREEMENT)
    }

    fn fits(&self, what: &'static str, got: usize) -> Result<(), PredictError> {
        let expected = self.mean.len();
        if got == expected {
            Ok(())
        } else {
            Err(PredictError::Length { what, got, expected })
        }
    }
}

/// Frequencies to compare.
pub(super) struct Inputs<'a> {
    pub(super) text: &'a [f32],
    pub(super) prefill: &'a [f32],
    pub(super) own: &'a [f32],
}

struct Distance<'a> {
    inputs: &'a Inputs<'a>,
    shares: [f32; 2],
}

impl NullaryFnOnce for Distance<'_> {
    /// Squared distance, and the summed variance p (1 - p) of one token.
    type Output = (f32, f32);

    #[inline(always)]
    fn call(self) -> (f32, f32) {
        const LANES: usize = 16;
        let (mut distance, mut variance) = ([0.0f32; LANES], [0.0f32; LANES]);
        let Inputs { text, prefill, own } = self.inputs;
        let chunks = text.chunks(LANES).zip(prefill.chunks(LANES)).zip(own.chunks(LANES));
        for ((text, prefill), own) in chunks {
            let lanes = distance.iter_mut().zip(&mut variance);
            for (((t, p), o), (d, v)) in text.iter().zip(prefill).zip(own).zip(lanes) {
                let gap = self.shares[0] * t + self.shares[1] * p - o;
                *d += gap * gap;
                *v += o * (1.0 - o);
            }
        }
        (distance.iter().sum(), variance.iter().sum())
    }
}

struct Mix<'a> {
    out: &'a mut [f32],
    has_text: bool,
    scratch: &'a Scratch,
    mean: &'a [f32],
    weights: Weights,
}

impl NullaryFnOnce for Mix<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let w = self.weights;
        let text = if self.has_text { w.text } else { 0.0 };
        let others = self.scratch.mapped.iter().zip(&self.scratch.own).zip(self.mean);
        if self.has_text {
            for (out, ((map, own), mean)) in self.out.iter_mut().zip(others) {
                *out = text * *out + w.prefill * map + w.own * own + w.mean * mean;
            }
        } else {
            for (out, ((map, own), mean)) in self.out.iter_mut().zip(others) {
                *out = w.prefill * map + w.own * own + w.mean * mean;
            }
        }
    }
}
