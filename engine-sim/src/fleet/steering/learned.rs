//! Learned predictors of a calibration part.

use coterie_locality::predictor::{Evidence, LearnOptions, Learned, NgramCounter, Scratch, learn};
use coterie_locality::{Fingerprint, Geometry, Sample};

use super::predictor::Predictor;
use crate::fleet::gates::{Recording, RequestGates};

/// What was learned, with the samples it was learned from.
pub(super) struct Maps {
    geometry: Geometry,
    learned: Learned,
}

impl Maps {
    /// `None` where there are too few requests.
    pub(super) fn learn(calibrating: &Recording) -> Option<Self> {
        let fingerprint = Fingerprint::new("simulated", calibrating.geometry);
        let samples: Vec<Sample> = (calibrating.requests.iter())
            .map(|request| Sample {
                prefill_counts: Some(request.prefill.clone()),
                decode_counts: Some(request.decode.counts(usize::MAX)),
                prompt_tokens: u64::from(request.prompt_tokens),
                generated_tokens: request.decode.tokens() as u64,
                ngrams: text(request).map_or_else(Vec::new, |t| t.ngrams()),
                ..Sample::new(fingerprint.clone())
            })
            .collect();
        let samples: Vec<&Sample> = samples.iter().collect();
        Some(Self {
            geometry: calibrating.geometry,
            learned: learn(&calibrating.geometry, &samples, &LearnOptions::default())?,
        })
    }

    /// Frequencies [L, E] to expect of a request. `calibrated` is its place among the calibration requests, if it is one: its text is then
    /// predicted by a map that did not see it. `None` where the evidence is missing.
    pub(super) fn predict(&self, by: Predictor, request: &RequestGates, calibrated: Option<usize>) -> Option<Vec<f32>> {
        let mut out = vec![0.0; self.geometry.cells()];
        if let (Predictor::Text, Some(sample)) = (by, calibrated)
            && self.learned.unseen_text_into(sample, &mut out)
        {
            return Some(out);
        }
        let text = if by.needs_text() { Some(text(request)?) } else { None };
        let evidence = Evidence {
            text: text.as_ref(),
            prefill: (by != Predictor::Text).then_some(&request.prefill),
        };
        let mut scratch = Scratch::new(&self.geometry);
        self.learned
            .predictors
            .predict_into(evidence, &mut scratch, &mut out)
            .ok()?;
        Some(out)
    }
}

/// Counted n-grams of a request's text; `None` if it is unknown.
pub(super) fn text(request: &RequestGates) -> Option<NgramCounter> {
    if !request.ngrams.is_empty() {
        return Some(NgramCounter::from_ngrams(&request.ngrams));
    }
    let mut counter = NgramCounter::new();
    counter.push(request.text.as_ref()?);
    Some(counter)
}
