//! `study`: what policies and predictors make of recorded requests that no fit has seen.
//!
//! - `fleet`: a fleet kept full, and the distinct experts that its requests see;
//! - `policies`: all policies, on the half that was not fitted;
//! - `predictors`: errors against the number of calibrated requests, and on domains that calibration never saw;
//! - `markdown`: tables for a page.

mod fleet;
mod markdown;
mod policies;
mod predictors;

use coterie_locality::Sample;
use serde::Serialize;

pub use policies::{BatchResult, KindResult, PolicyResult};
pub(crate) use predictors::errors_on;
pub use predictors::{PredictorResult, PredictorResults, Way, WayError};

use crate::{
    args::StudyArgs,
    error::Error,
    input::{self, Loaded},
    output::{Content, Done},
    progress::Progress,
    summary,
};

/// Fewest requests that a study says anything about.
const FEWEST: usize = 40;

/// Results of a study.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Study {
    kind: &'static str,
    model: String,
    geometry: coterie_locality::Geometry,
    /// Requests with prefill and decode counts.
    requests: usize,
    /// Of these, blends of two domains.
    blended: usize,
    workers: u16,
    repeats: u16,
    seed: u64,
    /// Distinct experts per layer and step, by policy and batch.
    policies: Vec<PolicyResult>,
    /// Errors of predictors.
    predictors: PredictorResults,
}

/// Requests, ready.
pub(crate) struct Requests<'a> {
    samples: Vec<&'a Sample>,
    /// Label of each; empty where the input has none.
    labels: Vec<String>,
    /// Domains in alphabetical order.
    domains: Vec<String>,
}

/// Runs the study.
///
/// # Errors
/// When the samples cannot be read or are too few.
pub fn study(args: &StudyArgs) -> Result<Done, Error> {
    let read = Progress::spinner("reading samples", args.json);
    let loaded = input::load(&args.input.samples, &args.input.reading, args.seed, &read)?;
    drop(read);
    let requests = Requests::new(&loaded);
    let Some(first) = requests.samples.first().filter(|_| requests.samples.len() >= FEWEST) else {
        let message = format!(
            "{} of {} samples have prefill and decode counts, a study needs {FEWEST}",
            requests.samples.len(),
            loaded.samples.len()
        );
        return Err(Error::input("TooFewSamples", message));
    };
    let study = Study {
        kind: "study",
        model: first.fingerprint.model.clone(),
        geometry: first.fingerprint.geometry,
        requests: requests.samples.len(),
        blended: (0..requests.samples.len()).filter(|at| requests.is_blend(*at)).count(),
        workers: args.workers,
        repeats: args.repeats,
        seed: args.seed,
        policies: policies::measure(args, &requests)?,
        predictors: predictors::measure(args, &requests, &first.fingerprint.geometry),
    };
    let text = study.markdown();
    Ok(Done {
        text: if args.json { summary::json(&study) } else { text.clone() },
        files: args
            .out
            .iter()
            .map(|path| (path.clone(), Content::Bytes(text.clone().into_bytes())))
            .collect(),
    })
}

impl<'a> Requests<'a> {
    fn new(loaded: &'a Loaded) -> Self {
        let mut requests = Self {
            samples: Vec::new(),
            labels: Vec::new(),
            domains: Vec::new(),
        };
        for (at, sample) in loaded.samples.iter().enumerate() {
            let counts = [&sample.prefill_counts, &sample.decode_counts];
            if counts
                .iter()
                .all(|counts| counts.as_ref().is_some_and(|counts| counts.tokens() > 0))
            {
                requests.samples.push(sample);
                let label = loaded.domains.as_ref().and_then(|labels| labels.get(at));
                requests.labels.push(label.cloned().unwrap_or_default());
            }
        }
        let halves = requests.labels.iter().flat_map(|label| label.split('+'));
        requests.domains = halves.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        requests.domains.sort_unstable();
        requests.domains.dedup();
        requests
    }

    /// Whether the request is a blend of two domains.
    fn is_blend(&self, at: usize) -> bool {
        self.labels.get(at).is_some_and(|label| label.contains('+'))
    }

    /// Number of the request's domain; of a blend, of its first half. Without labels every request has the same.
    fn domain(&self, at: usize) -> u32 {
        let label = self.labels.get(at).map_or("", String::as_str);
        let first = label.split('+').next().unwrap_or_default();
        self.domains
            .binary_search_by(|name| name.as_str().cmp(first))
            .unwrap_or(0) as u32
    }

    /// Kind of the request: its domain's number, or the number after the last for a blend.
    fn kind(&self, at: usize) -> usize {
        if self.is_blend(at) {
            self.domains.len()
        } else {
            self.domain(at) as usize
        }
    }

    fn kind_name(&self, kind: usize) -> String {
        self.domains.get(kind).cloned().unwrap_or_else(|| "blended".to_owned())
    }
}
