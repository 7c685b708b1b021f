//! What calibration learns from one part of the requests, and how it judges the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use coterie_locality::fit::{FitError, FitOptions, LayerChoice, Tau};
use coterie_locality::policy::{Frequencies, FrequenciesError};
use coterie_locality::transform::{TransformError, TransformKind};
use coterie_locality::{ActivationCounts, CentroidTable, Fingerprint, Sample, fit};

use super::predictor::Predictor;
use super::rule::Rule;
use crate::fleet::gates::{Recording, RequestGates};
use crate::fleet::simulate::Knowledge;

/// Calibration requests and those to be judged, with what was fitted on the former. Fits are made once per kind and number of clusters.
pub struct Calibration {
    calibrating: Recording,
    judged: Recording,
    cache: Mutex<BTreeMap<Key, Arc<Fitted>>>,
}

type Key = (bool, &'static str, usize);

/// A table and what it says of the judged requests.
#[derive(Clone)]
pub(super) struct Fitted {
    pub(super) table: Option<Arc<CentroidTable>>,
    pub(super) knowledge: Arc<Knowledge>,
}

/// Why calibration failed.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// The fit refused.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// Signatures could not be made.
    #[error(transparent)]
    Transform(#[from] TransformError),
    /// A prediction is no frequency.
    #[error(transparent)]
    Frequencies(#[from] FrequenciesError),
}

impl Calibration {
    /// Fits on `calibrating`, judges `judged`.
    pub fn new(calibrating: Recording, judged: Recording) -> Self {
        Self {
            calibrating,
            judged,
            cache: Mutex::new(BTreeMap::new()),
        }
    }

    /// The requests that are judged.
    pub fn judged(&self) -> &Recording {
        &self.judged
    }

    /// Shares of domains among the calibration requests; a blend counts half for each.
    pub(super) fn domain_shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.calibrating.domain_names.len()];
        for request in &self.calibrating.requests {
            for domain in &request.domains {
                shares[usize::from(*domain)] += 1.0 / request.domains.len() as f64;
            }
        }
        shares
    }

    /// What a rule with `workers` workers knows of the judged requests by a predictor.
    pub(super) fn fitted(
        &self,
        rule: Rule,
        predictor: Predictor,
        workers: usize,
    ) -> Result<Arc<Fitted>, CalibrationError> {
        let kind = if rule.needs_table() { rule.as_str() } else { "" };
        let key = (
            rule.needs_table(),
            if kind.is_empty() { predictor.as_str() } else { kind },
            workers,
        );
        let key = (key.0, key.1, key.2 * 16 + predictor as usize);
        if let Some(known) = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(known));
        }
        let fitted = Arc::new(self.fit(rule, predictor, workers)?);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(cache.entry(key).or_insert(fitted)))
    }

    fn fit(&self, rule: Rule, predictor: Predictor, workers: usize) -> Result<Fitted, CalibrationError> {
        let mut knowledge = Knowledge {
            domains: (self.judged.requests.iter())
                .map(|r| r.domains.first().map(|d| u32::from(*d)))
                .collect(),
            ..Knowledge::default()
        };
        if predictor != Predictor::None {
            knowledge.frequencies = (self.judged.requests.iter())
                .map(|r| Frequencies::new(&self.judged.geometry, &predict(predictor, r)).map(Arc::new))
                .collect::<Result<_, _>>()?;
        }
        let table = if rule.needs_table() && predictor != Predictor::None {
            Some(Arc::new(self.table(rule, predictor, workers)?))
        } else {
            None
        };
        if let Some(table) = &table {
            knowledge.dim = table.transform.dim();
            let mut row = vec![0.0; knowledge.dim];
            for request in &self.judged.requests {
                let counts = as_counts(predictor, request);
                table.transform.signature(&counts, &mut row)?;
                knowledge.signatures.extend_from_slice(&row);
            }
            knowledge.score(table);
        }
        Ok(Fitted {
            table,
            knowledge: Arc::new(knowledge),
        })
    }

    fn table(&self, rule: Rule, predictor: Predictor, workers: usize) -> Result<CentroidTable, CalibrationError> {
        let fingerprint = Fingerprint::new("simulated", self.calibrating.geometry);
        let sample = |request: &Arc<RequestGates>| {
            let mut sample = Sample::new(fingerprint.clone());
            sample.prefill_counts = Some(as_counts(predictor, request));
            sample.decode_counts = Some(request.decode.counts(usize::MAX));
            sample.prompt_tokens = u64::from(request.prompt_tokens);
            sample.generated_tokens = request.decode.tokens() as u64;
            sample
        };
        let samples: Vec<Sample> = self.calibrating.requests.iter().map(sample).collect();
        let options = FitOptions {
            predictors: None,
            clusters: workers,
            ..options(rule)
        };
        Ok(fit(&samples, &options, None)?.0)
    }
}

/// ELDR: one k-means run on (nearly) all samples, tau 0.1. Coterie: as the calibrator does by default.
fn options(rule: Rule) -> FitOptions {
    match rule {
        Rule::EldrStatic => FitOptions {
            transform: TransformKind::CountIdf,
            layer_selection: LayerChoice::Greedy,
            restarts: 1,
            held_out: 0.05,
            tau: Tau::Fixed(0.1),
            ..FitOptions::default()
        },
        _ => FitOptions::default(),
    }
}

/// The frequencies that a predictor expects of a request, [L, E].
fn predict(predictor: Predictor, request: &RequestGates) -> Vec<f32> {
    match predictor {
        Predictor::None => Vec::new(),
        Predictor::Prefill => request.prefill_frequencies(),
        Predictor::Truth => request.decode_frequencies(),
    }
}

/// The same as counts, which fits and signatures are made of.
fn as_counts(predictor: Predictor, request: &RequestGates) -> ActivationCounts {
    match predictor {
        Predictor::None | Predictor::Prefill => request.prefill.clone(),
        Predictor::Truth => request.decode.counts(usize::MAX),
    }
}
