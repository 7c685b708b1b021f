//! `evaluate`: simulated batches of samples under a table, and what another table would gain.

use coterie_locality::{
    ActivationCounts, CentroidTable, Sample,
    evaluate::{EvaluateOptions, EvaluationRequest, evaluate as simulate},
    fit::DistinctExperts,
    spearman::{Rho, rho_with_interval, sample_pairs},
    transform::normalise,
};
use serde::Serialize;

use crate::{
    args::EvaluateArgs,
    error::Error,
    input::{self, Loaded},
    output::Done,
    progress::Progress,
    statistics::Mean,
    study::{WayError, errors_on},
    summary::{self, columns, lines},
};

/// Pairs of requests that rho is taken over.
const PAIRS: usize = 30_000;
/// Resamplings behind its interval.
const RESAMPLES: usize = 200;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Evaluation {
    kind: &'static str,
    table: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<String>,
    /// Samples with prefill and decode counts.
    samples: usize,
    left_out: usize,
    workers: usize,
    repeats: u16,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rho: Option<Correlation>,
    batches: Vec<Simulated>,
    /// Errors of the table's predictors on these samples; empty without predictors.
    predictors: Vec<WayError>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Correlation {
    value: f64,
    standard_error: f64,
    interval: [f64; 2],
}

/// Distinct experts per layer and step of batches of one size, and what is gained: fractions, 0.1 = 10 % fewer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Simulated {
    batch: usize,
    least_loaded: Mean,
    random: Mean,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain_oracle: Option<Mean>,
    table: Mean,
    /// Of the table over least loaded.
    gain: Mean,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<Mean>,
    /// Of the table over the one that it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    gain_over_against: Option<Mean>,
}

/// Simulates batches.
///
/// # Errors
/// When table or samples cannot be read, do not fit each other, or are too few.
pub fn evaluate(args: &EvaluateArgs) -> Result<Done, Error> {
    let table = input::table(&args.table)?;
    let against = args.against.as_deref().map(input::table).transpose()?;
    let read = Progress::spinner("reading samples", args.json);
    let loaded = input::load(&args.input.samples, &args.input.reading, args.seed, &read)?;
    drop(read);
    let fingerprint = &table.table.fingerprint;
    let others = loaded.samples.iter().map(|sample| &sample.fingerprint);
    let others = others.chain(against.iter().map(|other| &other.table.fingerprint));
    if let Some(other) = others.into_iter().find(|other| !fingerprint.matches(other)) {
        let message = format!(
            "{} is of {} {}, but {} {} was given to evaluate it with: give samples and tables of one model",
            args.table.display(),
            fingerprint.model,
            fingerprint.geometry,
            other.model,
            other.geometry
        );
        return Err(Error::input("DifferentModels", message));
    }
    let requests = requests(&loaded);
    let workers = args.workers.map_or_else(|| table.table.clusters(), usize::from);
    if requests.len() < 2 * workers.max(2) {
        let message = format!(
            "{} of {} samples have prefill and decode counts, at least {} are needed for {workers} workers: collect more with replay",
            requests.len(),
            loaded.samples.len(),
            2 * workers.max(2)
        );
        return Err(Error::input("TooFewSamples", message));
    }
    let bar = Progress::bar(
        "simulating",
        args.batch.len() as u64 * u64::from(args.repeats),
        args.json,
    );
    let mut batches: Vec<Simulated> = Vec::new();
    for size in &args.batch {
        let found = batch(
            args,
            &table.table,
            against.as_ref().map(|other| &other.table),
            &requests,
            *size,
            &bar,
        )?;
        if batches.iter().all(|known| known.batch != found.batch) {
            batches.push(found);
        }
    }
    drop(bar);
    let usable: Vec<&Sample> = loaded.samples.iter().filter(|sample| is_usable(sample)).collect();
    let told = Evaluation {
        kind: "evaluation",
        table: table.digest,
        against: against.map(|other| other.digest),
        samples: requests.len(),
        left_out: loaded.samples.len() - requests.len(),
        workers,
        repeats: args.repeats,
        seed: args.seed,
        rho: rho(&table.table, &requests, args.seed).map(|rho| Correlation {
            value: rho.value,
            standard_error: rho.standard_error,
            interval: rho.interval,
        }),
        batches,
        predictors: table
            .table
            .predictors
            .as_ref()
            .map_or_else(Vec::new, |predictors| errors_on(predictors, &usable)),
    };
    Ok(if args.json { summary::json(&told) } else { told.text() }.into())
}

fn is_usable(sample: &Sample) -> bool {
    let counted = |counts: &Option<ActivationCounts>| counts.as_ref().is_some_and(|counts| counts.tokens() > 0);
    counted(&sample.prefill_counts) && counted(&sample.decode_counts)
}

fn requests(loaded: &Loaded) -> Vec<EvaluationRequest<'_>> {
    // A blend goes with its first half: the oracle knows one domain of each request.
    let primary = |label: &str| label.split('+').next().unwrap_or_default().to_owned();
    let mut names: Vec<String> = loaded.domains.iter().flatten().map(|label| primary(label)).collect();
    names.sort_unstable();
    names.dedup();
    let number = |at: usize| -> Option<u32> {
        let label = loaded.domains.as_ref()?.get(at)?;
        names.binary_search(&primary(label)).ok().map(|number| number as u32)
    };
    loaded
        .samples
        .iter()
        .enumerate()
        .filter(|(_, sample)| is_usable(sample))
        .filter_map(|(at, sample)| {
            Some(EvaluationRequest {
                prefill: sample.prefill_counts.as_ref()?,
                decode: sample.decode_counts.as_ref()?,
                domain: number(at),
            })
        })
        .collect()
}

/// One order of arrival: under the table, and distinct experts under the other one.
type Run = (DistinctExperts, Option<f64>);

fn batch(
    args: &EvaluateArgs,
    table: &CentroidTable,
    against: Option<&CentroidTable>,
    requests: &[EvaluationRequest<'_>],
    size: u16,
    bar: &Progress,
) -> Result<Simulated, Error> {
    let workers = args.workers.map_or_else(|| table.clusters(), usize::from);
    let run = |table: &CentroidTable, seed: u64| {
        let options = EvaluateOptions {
            workers,
            batch: usize::from(size),
            passes: 1,
            seed,
            ..EvaluateOptions::default()
        };
        simulate(table, requests, &options)
            .ok_or_else(|| Error::input("DoNotFit", "the samples do not fit the table's transform"))
    };
    let mut runs: Vec<Run> = Vec::new();
    for repeat in 0..u64::from(args.repeats) {
        let seed = args.seed.wrapping_add(repeat);
        let own = run(table, seed)?;
        let other = against.map(|other| run(other, seed)).transpose()?;
        runs.push((own, other.map(|other| other.table)));
        bar.tick();
    }
    let mean = |value: &dyn Fn(&Run) -> f64| Mean::of(runs.iter().map(value));
    let optional =
        |value: &dyn Fn(&Run) -> Option<f64>| runs.iter().map(value).collect::<Option<Vec<f64>>>().map(Mean::of);
    Ok(Simulated {
        batch: runs.first().map_or(0, |(own, _)| own.batch),
        least_loaded: mean(&|(own, _)| own.least_loaded),
        random: mean(&|(own, _)| own.random),
        domain_oracle: optional(&|(own, _)| own.domain_oracle),
        table: mean(&|(own, _)| own.table),
        gain: mean(&|(own, _)| own.gain()),
        against: optional(&|(_, other)| *other),
        gain_over_against: optional(&|(own, other)| {
            other.map(|other| if other > 0.0 { 1.0 - own.table / other } else { 0.0 })
        }),
    })
}

/// Rho of the table's signatures over these requests.
fn rho(table: &CentroidTable, requests: &[EvaluationRequest<'_>], seed: u64) -> Option<Rho> {
    let (dim, cells) = (table.transform.dim(), table.fingerprint.geometry.cells());
    let mut signatures = vec![0.0; requests.len() * dim];
    let mut decode = Vec::with_capacity(requests.len() * cells);
    for (request, row) in requests.iter().zip(signatures.chunks_exact_mut(dim)) {
        table.transform.signature(request.prefill, row).ok()?;
        let mut frequencies: Vec<f32> = request.decode.cells().iter().map(|count| *count as f32).collect();
        normalise(&mut frequencies);
        decode.append(&mut frequencies);
    }
    let pairs = sample_pairs(requests.len(), PAIRS, seed);
    let distances = |rows: &[f32], dim: usize| -> Vec<f32> {
        let row = |at: u32| rows.get(at as usize * dim..(at as usize + 1) * dim).unwrap_or(&[]);
        let product = |(a, b): &(u32, u32)| row(*a).iter().zip(row(*b)).map(|(x, y)| x * y).sum::<f32>();
        pairs.iter().map(|pair| 1.0 - product(pair)).collect()
    };
    let (signal, target) = (distances(&signatures, dim), distances(&decode, cells));
    rho_with_interval(&pairs, &signal, &target, requests.len(), RESAMPLES, seed)
}

impl Evaluation {
    fn text(&self) -> String {
        let rho = self
            .rho
            .as_ref()
            .map(|rho| format!("{:.3} ({:.3} to {:.3})", rho.value, rho.interval[0], rho.interval[1]));
        let head = lines([
            ("table", Some(self.table.clone())),
            ("against", self.against.clone()),
            (
                "samples",
                Some(format!("{} used, {} left out", self.samples, self.left_out)),
            ),
            ("workers", Some(self.workers.to_string())),
            ("rho", rho),
        ]);
        let percent = |mean: &Mean| format!("{:.1} +- {:.1} %", mean.mean * 100.0, mean.standard_error * 100.0);
        let optional = |mean: &Option<Mean>| mean.as_ref().map_or_else(|| "-".to_owned(), Mean::to_string);
        let mut names = vec!["batch", "least loaded", "random", "domain oracle", "table", "gain"];
        if self.against.is_some() {
            names.extend(["against", "gain over it"]);
        }
        let mut rows = vec![names.into_iter().map(str::to_owned).collect::<Vec<_>>()];
        for batch in &self.batches {
            let mut row = vec![
                batch.batch.to_string(),
                batch.least_loaded.to_string(),
                batch.random.to_string(),
                optional(&batch.domain_oracle),
                batch.table.to_string(),
                percent(&batch.gain),
            ];
            if self.against.is_some() {
                row.push(optional(&batch.against));
                row.push(batch.gain_over_against.as_ref().map_or_else(|| "-".to_owned(), percent));
            }
            rows.push(row);
        }
        let errors: Vec<String> = self
            .predictors
            .iter()
            .map(|found| format!("{} {:.1}", found.way.head(), found.error.mean))
            .collect();
        let errors = if errors.is_empty() {
            String::new()
        } else {
            format!(
                "\n\nerror of expected decode frequencies, x 10^4: {}",
                errors.join(", ")
            )
        };
        format!(
            "{head}\n\ndistinct experts per layer and step, mean +- standard error over {} orders of arrival\n{}{errors}",
            self.repeats,
            columns(&rows)
        )
    }
}
