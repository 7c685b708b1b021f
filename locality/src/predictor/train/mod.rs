//! Learning predictors from calibration samples. Nothing depends on the order of the samples, the number of threads or the machine.

mod blend;
mod factor;
mod features;
mod products;
mod ridge;
mod samples;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::half_rows::MAX_RANK;
use super::low_rank::{Latent, LowRankMap};
use super::maps::{PrefillMap, TextMap};
use super::mixing::Mixing;
use super::predictors::Predictors;
use crate::geometry::Geometry;
use crate::sample::Sample;
use crate::table::nine_decimals;
use features::{Known, prefill_features, text_features};
use ridge::{Ridge, ridge};
use samples::Ready;

/// Samples with decode counts, and with what a map reads, below which that map is not learned.
pub const MIN_PREDICTOR_SAMPLES: usize = 48;
/// Samples that maps are learned from at most: time grows with their third power.
pub const MAX_PREDICTOR_SAMPLES: usize = 4096;

/// How to learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnOptions {
    /// Rank of the maps, 1..=64.
    pub rank: usize,
}

impl Default for LearnOptions {
    fn default() -> Self {
        Self { rank: 32 }
    }
}

/// How well predictors do on samples that they did not see: each is left out in turn. Errors are mean squared errors of decode
/// frequencies per token and cell; those of `mixed` weigh at most a dozen mixtures in sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PredictorReport {
    /// Samples with decode counts.
    pub samples: u64,
    /// Of these, samples that the text map was learned from.
    pub text_samples: u64,
    /// Of these, samples that the prefill map was learned from.
    pub prefill_samples: u64,
    /// Rank of the text map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_rank: Option<u64>,
    /// Rank of the prefill map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill_rank: Option<u64>,
    /// Ridge penalty of the text map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_penalty: Option<f64>,
    /// Ridge penalty of the prefill map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill_penalty: Option<f64>,
    /// Error of the samples' mean.
    pub mean_error: f64,
    /// Error of a request's own prefill frequencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_error: Option<f64>,
    /// Error of the text map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_error: Option<f64>,
    /// Error of the prefill map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill_error: Option<f64>,
    /// Error of the mixture of all, for requests with text and prefill counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixed_error: Option<f64>,
    /// Error of the text map on regions of traffic that it did not see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_error_unseen_region: Option<f64>,
    /// Error of the prefill map on regions of traffic that it did not see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill_error_unseen_region: Option<f64>,
    /// Error of the mixture on regions of traffic that its maps did not see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixed_error_unseen_region: Option<f64>,
}

impl PredictorReport {
    /// The same numbers to nine decimals.
    #[must_use]
    pub fn rounded(mut self) -> Self {
        self.mean_error = nine_decimals(self.mean_error);
        for value in [
            &mut self.own_error,
            &mut self.text_penalty,
            &mut self.prefill_penalty,
            &mut self.text_error,
            &mut self.prefill_error,
            &mut self.mixed_error,
            &mut self.text_error_unseen_region,
            &mut self.prefill_error_unseen_region,
            &mut self.mixed_error_unseen_region,
        ] {
            *value = value.map(nine_decimals);
        }
        self
    }
}

/// What was learned.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The predictors.
    pub predictors: Predictors,
    /// How well they do.
    pub report: PredictorReport,
    text: Option<Fitted>,
}

/// A map, and what it would have said of its own samples had it not seen them.
#[derive(Clone, Debug)]
struct Fitted {
    /// Sample (in the order of [`Ready`]) of each column of `unseen`.
    of: Vec<usize>,
    /// The caller's index of each column.
    given: Vec<usize>,
    /// Latent to frequencies.
    expander: LowRankMap,
    rank: usize,
    /// [rank, N]
    unseen: Vec<f64>,
    unseen_group: [Vec<f64>; samples::GROUPINGS],
    penalty: f64,
}

impl Fitted {
    fn new(of: Vec<usize>, ready: &Ready<'_>, found: &Ridge) -> Option<Self> {
        Some(Self {
            given: of.iter().map(|i| ready.index[*i]).collect(),
            expander: LowRankMap::from_exact(&vec![1.0; found.rank], &found.output, &ready.mean, found.rank)?,
            rank: found.rank,
            unseen: found.unseen.clone(),
            unseen_group: found.unseen_group.clone(),
            penalty: found.penalty,
            of,
        })
    }

    /// Frequencies of one column.
    fn expand(&self, latent: &[f64], column: usize, geometry: &Geometry, out: &mut [f32]) {
        let n = self.of.len();
        let mut values: Latent = [0.0; MAX_RANK];
        for (slot, row) in values.iter_mut().zip(latent.chunks_exact(n)) {
            *slot = row[column] as f32;
        }
        self.expander.expand(&values, out);
        super::frequencies::settle(out, geometry);
    }
}

impl Learned {
    /// Samples (numbered as given to [`learn`]) that the text map was learned from, ascending.
    pub fn text_samples(&self) -> Vec<usize> {
        let mut given: Vec<usize> = self.text.iter().flat_map(|t| t.given.iter().copied()).collect();
        given.sort_unstable();
        given
    }

    /// Writes what the text map would say of a sample that it was learned from, had it not seen it, to `out` [L, E]. `false` for other
    /// samples.
    pub fn unseen_text_into(&self, sample: usize, out: &mut [f32]) -> bool {
        let Some(text) = &self.text else { return false };
        let Some(column) = text.given.iter().position(|g| *g == sample) else {
            return false;
        };
        text.expand(&text.unseen, column, &self.predictors.geometry, out);
        true
    }
}

/// Learns what the samples allow. `None` without any sample that has decode counts.
pub fn learn(geometry: &Geometry, samples: &[&Sample], options: &LearnOptions) -> Option<Learned> {
    let ready = Ready::new(geometry, samples, MAX_PREDICTOR_SAMPLES)?;
    let rank = options.rank.clamp(1, MAX_RANK);
    let all = || 0..ready.samples.len();
    let with_text: Vec<usize> = all().filter(|i| !ready.samples[*i].ngrams.is_empty()).collect();
    let with_prefill: Vec<usize> = all()
        .filter(|i| {
            ready.samples[*i]
                .prefill_counts
                .as_ref()
                .is_some_and(|c| c.tokens() > 0)
        })
        .collect();
    let known = Known::new(&ready, &with_text);
    let (text, prefill) = rayon::join(
        || learn_text(&ready, with_text, &known, rank),
        || learn_prefill(&ready, with_prefill.clone(), rank),
    );
    let (text_map, text) = text.unzip();
    let (prefill_map, prefill) = prefill.unzip();
    let mut predictors = Predictors {
        geometry: *geometry,
        mean: ready.mean.clone(),
        text: text_map,
        prefill: prefill_map,
        mixing: Mixing::default(),
    };
    let (mixing, mut report) = blend::blend(&ready, &predictors, text.as_ref(), prefill.as_ref(), &known);
    predictors.mixing = mixing;
    report.samples = ready.samples.len() as u64;
    report.text_samples = text.as_ref().map_or(0, |t: &Fitted| t.of.len() as u64);
    report.prefill_samples = prefill.as_ref().map_or(0, |p: &Fitted| p.of.len() as u64);
    report.text_rank = text.as_ref().map(|t| t.rank as u64);
    report.prefill_rank = prefill.as_ref().map(|p| p.rank as u64);
    report.text_penalty = text.as_ref().map(|t| t.penalty);
    report.prefill_penalty = prefill.as_ref().map(|p| p.penalty);
    Some(Learned {
        predictors,
        report: report.rounded(),
        text,
    })
}

fn learn_text(ready: &Ready<'_>, among: Vec<usize>, known: &Known, rank: usize) -> Option<(TextMap, Fitted)> {
    if among.len() < MIN_PREDICTOR_SAMPLES {
        return None;
    }
    let features = text_features(ready, &among);
    let (targets, weights, groups) = ready.targets(&among);
    let found = ridge(&features.kernel(), &targets, &weights, &groups, rank)?;
    let input = features.input(&found.dual, found.rank);
    let offset = offset(ready, &found, &vec![0.0; found.rank]);
    let map = LowRankMap::from_exact(&input, &found.output, &offset, found.rank)?;
    Some((TextMap::new(map, known.all())?, Fitted::new(among, ready, &found)?))
}

fn learn_prefill(ready: &Ready<'_>, among: Vec<usize>, rank: usize) -> Option<(PrefillMap, Fitted)> {
    if among.len() < MIN_PREDICTOR_SAMPLES {
        return None;
    }
    let features = prefill_features(ready, &among);
    let (targets, weights, groups) = ready.targets(&among);
    let found = ridge(&features.kernel(), &targets, &weights, &groups, rank)?;
    let input = features.input(&found.dual, found.rank);
    // The features were centred: what their mean stands for is taken off once.
    let mut constant = vec![0.0f64; found.rank];
    for (row, mean) in input.chunks_exact(found.rank).zip(&features.mean) {
        constant
            .iter_mut()
            .zip(row)
            .for_each(|(c, v)| *c -= f64::from(*v) * f64::from(*mean));
    }
    let offset = offset(ready, &found, &constant);
    let map = LowRankMap::from_exact(&input, &found.output, &offset, found.rank)?;
    Some((PrefillMap::new(map)?, Fitted::new(among, ready, &found)?))
}

/// What the map gives without any feature: the mean, the constant feature and `constant`.
fn offset(ready: &Ready<'_>, found: &Ridge, constant: &[f64]) -> Vec<f32> {
    let mut out = ready.mean.clone();
    let n = found.dual.len() / found.rank.max(1);
    for ((row, dual), constant) in found
        .output
        .chunks_exact(out.len())
        .zip(found.dual.chunks_exact(n))
        .zip(constant)
    {
        let latent = (dual.iter().sum::<f64>() + constant) as f32;
        out.par_iter_mut().zip(row).for_each(|(o, v)| *o += latent * v);
    }
    out
}
