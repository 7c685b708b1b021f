//! What calibration learns from one part of the requests, and how it judges the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use coterie_locality::fit::{FitError, FitOptions, LayerChoice, Tau};
use coterie_locality::policy::{Frequencies, FrequenciesError};
use coterie_locality::transform::{TransformError, TransformKind};
use coterie_locality::{ActivationCounts, CentroidTable, Fingerprint, Sample, fit};

use super::learned::{Maps, text};
use super::predictor::Predictor;
use super::rule::Rule;
use crate::fleet::gates::{Recording, RequestGates};
use crate::fleet::simulate::Knowledge;

/// Tokens that predicted frequencies are taken to be counted over.
const SCALE: f32 = 4096.0;

/// Calibration requests and those to be judged, with what was fitted on the former. Fits are made once per kind and number of clusters.
pub struct Calibration {
    calibrating: Recording,
    judged: Recording,
    maps: OnceLock<Option<Maps>>,
    cache: Mutex<BTreeMap<Key, Arc<Fitted>>>,
}

/// Whether there is a table, whether it is ELDR's, the predictor, workers.
type Key = (bool, bool, Predictor, usize);

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
    /// A predictor without what it reads.
    #[error("predictor {0} needs {1}")]
    Predictor(Predictor, &'static str),
    /// Counts could not be made of predictions.
    #[error(transparent)]
    Counts(#[from] coterie_locality::counts::CountsError),
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
            maps: OnceLock::new(),
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
        let key = (
            rule.needs_table(),
            rule.is_eldr(),
            predictor,
            if rule.needs_table() { workers } else { 0 },
        );
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
                .map(|r| {
                    Ok::<_, CalibrationError>(Arc::new(Frequencies::new(
                        &self.judged.geometry,
                        &self.predict(predictor, r, None)?,
                    )?))
                })
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
                let counts = self.as_counts(predictor, request, None)?;
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

    /// Predictors that these requests have the evidence for.
    pub fn predictors(&self) -> Vec<Predictor> {
        let with_text = |r: &Recording| r.requests.iter().all(|r| text(r).is_some());
        let has_text = with_text(&self.calibrating) && with_text(&self.judged);
        Predictor::ALL
            .into_iter()
            .filter(|p| has_text || !p.needs_text())
            .collect()
    }

    /// The frequencies that a predictor expects of a request, [L, E]. `calibrated` is its place among the calibration requests.
    fn predict(
        &self,
        by: Predictor,
        request: &RequestGates,
        calibrated: Option<usize>,
    ) -> Result<Vec<f32>, CalibrationError> {
        match by {
            Predictor::None => Ok(Vec::new()),
            Predictor::Prefill => Ok(request.prefill_frequencies()),
            Predictor::Truth => Ok(request.decode_frequencies()),
            learned => {
                let maps = self.maps.get_or_init(|| Maps::learn(&self.calibrating)).as_ref();
                let maps = maps.ok_or(CalibrationError::Predictor(by, "more calibration requests"))?;
                let found = maps.predict(learned, request, calibrated);
                found.ok_or(CalibrationError::Predictor(
                    by,
                    "requests with text: --tokenizer, or n-grams in the file",
                ))
            }
        }
    }

    /// The same as counts, which fits and signatures are made of: real ones where there are.
    fn as_counts(
        &self,
        by: Predictor,
        request: &RequestGates,
        calibrated: Option<usize>,
    ) -> Result<ActivationCounts, CalibrationError> {
        Ok(match by {
            Predictor::None | Predictor::Prefill => request.prefill.clone(),
            Predictor::Truth => request.decode.counts(usize::MAX),
            learned => {
                let values = self.predict(learned, request, calibrated)?;
                let cells = values.iter().map(|v| (v * SCALE).round().max(0.0) as u32).collect();
                ActivationCounts::from_cells(&self.judged.geometry, cells, SCALE as u64)?
            }
        })
    }

    fn table(&self, rule: Rule, predictor: Predictor, workers: usize) -> Result<CentroidTable, CalibrationError> {
        let fingerprint = Fingerprint::new("simulated", self.calibrating.geometry);
        let sample = |(index, request): (usize, &Arc<RequestGates>)| {
            let mut sample = Sample::new(fingerprint.clone());
            sample.prefill_counts = Some(self.as_counts(predictor, request, Some(index))?);
            sample.decode_counts = Some(request.decode.counts(usize::MAX));
            sample.prompt_tokens = u64::from(request.prompt_tokens);
            sample.generated_tokens = request.decode.tokens() as u64;
            Ok(sample)
        };
        let requests = self.calibrating.requests.iter().enumerate();
        let samples: Vec<Sample> = requests.map(sample).collect::<Result<_, CalibrationError>>()?;
        let options = FitOptions {
            predictors: None,
            clusters: workers,
            ..options(rule, predictor)
        };
        Ok(fit(&samples, &options, None)?.0)
    }
}

/// ELDR: one k-means run on (nearly) all samples, tau 0.1. Coterie: as the calibrator does by default.
fn options(rule: Rule, predictor: Predictor) -> FitOptions {
    // Learned frequencies are positive nearly everywhere, which leaves nothing of inverse document frequencies.
    let transform = if predictor.is_learned() {
        TransformKind::Count
    } else {
        TransformKind::CountIdf
    };
    match rule {
        Rule::EldrStatic | Rule::EldrOnline => FitOptions {
            transform,
            layer_selection: LayerChoice::Greedy,
            restarts: 1,
            held_out: 0.05,
            tau: Tau::Fixed(0.1),
            ..FitOptions::default()
        },
        _ => FitOptions {
            transform,
            ..FitOptions::default()
        },
    }
}
