//! Error of each predictor against the number of calibrated requests, and on domains that calibration never saw.

use coterie_locality::{
    Geometry, Sample,
    predictor::{Evidence, LearnOptions, Learned, NgramCounter, Predictors, Scratch, learn, own_frequencies},
};
use rand::{SeedableRng, seq::SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::Requests;
use crate::{args::StudyArgs, progress::Progress, statistics::Mean};

/// One request in this many is held out of calibration.
const HELD_OUT: usize = 4;
/// Most requests that calibration of an unseen domain takes.
const MOST_FOR_UNSEEN: usize = 1000;

/// A way to predict decode frequencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Way {
    /// Mean of the calibrated requests.
    Mean,
    /// The request's own prefill frequencies.
    OwnPrefill,
    /// The learned map of prefill frequencies.
    PrefillMap,
    /// The learned map of text.
    TextMap,
    /// Prefill map, own frequencies and mean, mixed by confidence: a request without text.
    MixedPrefill,
    /// Text map and mean, mixed by confidence: a request without counts.
    MixedText,
    /// Everything, mixed by confidence.
    Mixed,
}

impl Way {
    /// All ways, in the order of the tables.
    pub const ALL: [Self; 7] = [
        Self::Mean,
        Self::OwnPrefill,
        Self::PrefillMap,
        Self::TextMap,
        Self::MixedPrefill,
        Self::MixedText,
        Self::Mixed,
    ];

    /// Head of a column.
    pub(crate) fn head(self) -> &'static str {
        match self {
            Self::Mean => "global mean",
            Self::OwnPrefill => "own prefill",
            Self::PrefillMap => "map of prefill",
            Self::TextMap => "map of text",
            Self::MixedPrefill => "mix, no text",
            Self::MixedText => "mix, no counts",
            Self::Mixed => "mix of all",
        }
    }
}

/// Error of one way: mean squared error per cell of decode frequencies per token, x 10^4.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WayError {
    /// The way.
    pub way: Way,
    /// Its error.
    pub error: Mean,
}

/// Errors on one kind of request after one calibration: mean squared error per cell of decode frequencies per token, x 10^4.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PredictorResult {
    /// `pure`, `blended`, or the domain that calibration did not see.
    pub on: String,
    /// Calibrated requests.
    pub calibrated: usize,
    /// Requests evaluated, over all repeats.
    pub evaluated: usize,
    /// Error of each way that there is.
    pub errors: Vec<WayError>,
}

impl PredictorResult {
    /// Error of one way.
    pub(super) fn error(&self, way: Way) -> Option<Mean> {
        self.errors
            .iter()
            .find(|found| found.way == way)
            .map(|found| found.error)
    }
}

/// All errors.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PredictorResults {
    /// Against the number of calibrated requests.
    pub learning: Vec<PredictorResult>,
    /// On domains that calibration did not see, and their mean.
    pub unseen: Vec<PredictorResult>,
}

/// Summed errors of one calibration.
#[derive(Clone, Default)]
struct Errors {
    requests: usize,
    sums: [f64; Way::ALL.len()],
    known: [usize; Way::ALL.len()],
}

impl Errors {
    fn mean(&self, way: usize) -> Option<f64> {
        (self.known[way] > 0).then(|| self.sums[way] / self.known[way] as f64 * 1e4)
    }
}

/// Measures all predictors.
pub(super) fn measure(args: &StudyArgs, requests: &Requests<'_>, geometry: &Geometry) -> PredictorResults {
    let bar = Progress::bar(
        "predictors",
        (args.repeats as usize + requests.domains.len()) as u64,
        args.json,
    );
    let mut learning: Vec<(String, usize, Vec<Errors>)> = Vec::new();
    for repeat in 0..u64::from(args.repeats) {
        let (pool, held) = split(requests.samples.len(), args.seed.wrapping_add(repeat));
        let sizes = args.calibrated.iter().map(|n| *n as usize).filter(|n| *n < pool.len());
        for size in sizes.chain([pool.len()]) {
            let Some(learned) = learn_from(requests, geometry, pool.get(..size).unwrap_or(&pool)) else {
                continue;
            };
            for (on, blended) in [("pure", false), ("blended", true)] {
                let evaluated: Vec<&Sample> = held
                    .iter()
                    .filter(|at| requests.is_blend(**at) == blended)
                    .map(|at| requests.samples[*at])
                    .collect();
                let errors = errors(&learned.predictors, geometry, &evaluated);
                match learning.iter_mut().find(|(known, n, _)| known == on && *n == size) {
                    Some((_, _, runs)) => runs.push(errors),
                    None => learning.push((on.to_owned(), size, vec![errors])),
                }
            }
        }
        bar.tick();
    }
    let mut unseen: Vec<(String, usize, Vec<Errors>)> = Vec::new();
    for domain in requests.domains.iter().filter(|_| requests.domains.len() > 1) {
        let (order, _) = split_off(requests.samples.len(), 0, args.seed);
        let foreign = |at: &usize| requests.labels[*at].split('+').all(|half| half != domain);
        let pool: Vec<usize> = order.iter().copied().filter(foreign).take(MOST_FOR_UNSEEN).collect();
        let evaluated: Vec<&Sample> = order
            .iter()
            .filter(|at| requests.labels[**at] == *domain)
            .map(|at| requests.samples[*at])
            .collect();
        if let Some(learned) = learn_from(requests, geometry, &pool) {
            unseen.push((
                domain.clone(),
                pool.len(),
                vec![errors(&learned.predictors, geometry, &evaluated)],
            ));
        }
        bar.tick();
    }
    let over_domains: Vec<Errors> = unseen.iter().flat_map(|(_, _, runs)| runs.iter().cloned()).collect();
    let mut unseen: Vec<PredictorResult> = unseen.iter().filter_map(result).collect();
    if let Some(n) = unseen.iter().map(|found| found.calibrated).min() {
        unseen.extend(result(&("mean of domains".to_owned(), n, over_domains)));
    }
    learning.sort_by(|a, b| (b.0.as_str(), a.1).cmp(&(a.0.as_str(), b.1)));
    PredictorResults {
        learning: learning.iter().filter_map(result).collect(),
        unseen,
    }
}

fn result((on, calibrated, runs): &(String, usize, Vec<Errors>)) -> Option<PredictorResult> {
    let evaluated: usize = runs.iter().map(|run| run.requests).sum();
    let error = |(at, way): (usize, &Way)| {
        let means: Vec<f64> = runs.iter().filter_map(|run| run.mean(at)).collect();
        (!means.is_empty()).then(|| WayError {
            way: *way,
            error: Mean::of(means),
        })
    };
    (evaluated > 0).then(|| PredictorResult {
        on: on.clone(),
        calibrated: *calibrated,
        evaluated,
        errors: Way::ALL.iter().enumerate().filter_map(error).collect(),
    })
}

/// Requests for calibration and requests held out, in a seeded order.
fn split(count: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    split_off(count, count / HELD_OUT, seed)
}

fn split_off(count: usize, held: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..count).collect();
    order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    let held = order.split_off(count - held);
    (order, held)
}

fn learn_from(requests: &Requests<'_>, geometry: &Geometry, among: &[usize]) -> Option<Learned> {
    let samples: Vec<&Sample> = among.iter().map(|at| requests.samples[*at]).collect();
    learn(geometry, &samples, &LearnOptions::default())
}

/// Errors of a table's predictors on these samples; the standard errors are 0, as there is one calibration.
pub(crate) fn errors_on(predictors: &Predictors, samples: &[&Sample]) -> Vec<WayError> {
    let found = errors(predictors, predictors.geometry(), samples);
    let error = |(at, way): (usize, Way)| {
        let error = Mean::of([found.mean(at)?]);
        Some(WayError { way, error })
    };
    Way::ALL.into_iter().enumerate().filter_map(error).collect()
}

/// Summed errors on these requests.
fn errors(predictors: &Predictors, geometry: &Geometry, samples: &[&Sample]) -> Errors {
    let mut scratch = Scratch::new(geometry);
    let mut out = vec![0.0f32; geometry.cells()];
    let mut truth = vec![0.0f32; geometry.cells()];
    let mut errors = Errors::default();
    for sample in samples {
        let (Some(prefill), Some(decode)) = (&sample.prefill_counts, &sample.decode_counts) else {
            continue;
        };
        own_frequencies(decode, &mut truth);
        errors.requests += 1;
        let counter = NgramCounter::from_ngrams(&sample.ngrams);
        let text = (!sample.ngrams.is_empty() && predictors.text().is_some()).then_some(&counter);
        for (at, way) in Way::ALL.into_iter().enumerate() {
            let mut mixed = |evidence: Evidence<'_>| predictors.predict_into(evidence, &mut scratch, &mut out).is_ok();
            let there = match way {
                Way::Mean => mixed(Evidence::default()),
                Way::OwnPrefill => own_frequencies(prefill, &mut out),
                Way::PrefillMap => predictors.prefill_into(prefill, &mut out),
                Way::TextMap => text.is_some_and(|text| predictors.text_into(text, &mut out).is_ok()),
                Way::MixedPrefill => mixed(Evidence {
                    prefill: Some(prefill),
                    text: None,
                }),
                Way::MixedText => text.is_some() && mixed(Evidence { prefill: None, text }),
                Way::Mixed => {
                    text.is_some()
                        && mixed(Evidence {
                            prefill: Some(prefill),
                            text,
                        })
                }
            };
            if there {
                let squares = out
                    .iter()
                    .zip(&truth)
                    .map(|(a, b)| f64::from((a - b) * (a - b)))
                    .sum::<f64>();
                errors.sums[at] += squares / truth.len() as f64;
                errors.known[at] += 1;
            }
        }
    }
    errors
}
