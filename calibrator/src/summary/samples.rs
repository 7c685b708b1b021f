//! What a file of samples holds.

use std::collections::{BTreeMap, BTreeSet};

use coterie_locality::{
    Geometry,
    sample::{Sample, Source},
};
use serde::Serialize;

use super::lines;
use crate::input::Form;

/// Most models, tables and domains told apart, so that memory stays bounded whatever comes.
const MOST_NAMES: usize = 10_000;

/// What a file of samples holds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SampleSummary {
    kind: &'static str,
    form: Form,
    #[serde(flatten)]
    tally: Tally,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ModelSamples {
    model: String,
    geometry: Geometry,
    samples: u64,
}

/// Samples added up one by one, in memory that does not grow with their number.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    samples: u64,
    models: Vec<ModelSamples>,
    with_prefill_counts: u64,
    with_decode_counts: u64,
    with_ngrams: u64,
    source_text: u64,
    prompt_tokens: u64,
    generated_tokens: u64,
    /// Requests that the samples stand for.
    weight: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_unix_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_unix_ms: Option<u64>,
    /// Digests of the tables that they were routed by.
    tables: BTreeSet<String>,
    /// Samples of each domain.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    domains: BTreeMap<String, u64>,
}

impl Tally {
    /// Adds a sample and its label.
    pub fn add(&mut self, sample: &Sample, domain: Option<&str>) {
        self.samples += 1;
        let (model, geometry) = (&sample.fingerprint.model, sample.fingerprint.geometry);
        let room = self.models.len() < MOST_NAMES;
        let known = self
            .models
            .iter_mut()
            .find(|known| known.model == *model && known.geometry == geometry);
        match known {
            Some(known) => known.samples += 1,
            None if room => self.models.push(ModelSamples {
                model: model.clone(),
                geometry,
                samples: 1,
            }),
            None => {}
        }
        self.with_prefill_counts += u64::from(sample.prefill_counts.is_some());
        self.with_decode_counts += u64::from(sample.decode_counts.is_some());
        self.with_ngrams += u64::from(!sample.ngrams.is_empty());
        self.source_text += u64::from(sample.source == Source::Text);
        self.prompt_tokens = self.prompt_tokens.saturating_add(sample.prompt_tokens);
        self.generated_tokens = self.generated_tokens.saturating_add(sample.generated_tokens);
        self.weight += f64::from(sample.weight);
        if sample.time_unix_ms > 0 {
            let time = sample.time_unix_ms;
            self.first_unix_ms = Some(self.first_unix_ms.map_or(time, |first| first.min(time)));
            self.last_unix_ms = Some(self.last_unix_ms.map_or(time, |last| last.max(time)));
        }
        if let Some(digest) = sample.table_digest.as_ref().filter(|_| self.tables.len() < MOST_NAMES) {
            self.tables.insert(digest.clone());
        }
        if let Some(domain) = domain.filter(|_| self.domains.len() < MOST_NAMES) {
            *self.domains.entry(domain.to_owned()).or_default() += 1;
        }
    }

    /// What was added, of an input of this form.
    pub fn summary(self, form: Form) -> SampleSummary {
        SampleSummary {
            kind: "samples",
            form,
            tally: self,
        }
    }
}

impl SampleSummary {
    /// Samples added up.
    pub fn samples(&self) -> u64 {
        self.tally.samples
    }

    /// Lines for a person.
    pub fn text(&self) -> String {
        let tally = &self.tally;
        let count = |n: u64| (n > 0).then(|| n.to_string());
        let models: Vec<String> = tally
            .models
            .iter()
            .map(|m| format!("{} {} ({})", m.model, m.geometry, m.samples))
            .collect();
        let domains: Vec<String> = tally.domains.iter().map(|(name, n)| format!("{name} {n}")).collect();
        lines([
            ("samples", Some(tally.samples.to_string())),
            ("model", Some(models.join(", "))),
            ("with prefill counts", Some(tally.with_prefill_counts.to_string())),
            ("with decode counts", Some(tally.with_decode_counts.to_string())),
            ("with n-grams", Some(tally.with_ngrams.to_string())),
            ("of source Text", count(tally.source_text)),
            ("prompt tokens", Some(tally.prompt_tokens.to_string())),
            ("generated tokens", Some(tally.generated_tokens.to_string())),
            ("requests stood for", Some(format!("{:.0}", tally.weight))),
            ("routed by tables", count(tally.tables.len() as u64)),
            ("domains", (!domains.is_empty()).then(|| domains.join(", "))),
        ])
    }
}
