//! All policies on the half of the requests that was not fitted.

use std::collections::BTreeMap;

use coterie_locality::{
    CentroidTable, FitOptions, Sample, assign,
    fit::{Tau, fit},
    policy::{
        Frequencies, LeastLoaded, LocalityBand, MarginalCost, Policy, PowerOfTwoChoices, Random, RoundRobin, Ties,
    },
    predictor::{Evidence, LearnOptions, NgramCounter, Predictors, Scratch, learn},
    scores,
};
use rand::{SeedableRng, seq::SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::{
    Requests,
    fleet::{Knowledge, Seen, Size, Traffic},
};
use crate::{args::StudyArgs, error::Error, progress::Progress, statistics::Mean};

/// Width of ELDR's band.
const ELDR_TAU: f32 = 0.1;
/// Load guard of ours, as routers have it unless told otherwise.
const MAX_LOAD_RATIO: f32 = 1.5;
/// Name of the policy that all others are compared with.
pub(super) const BASE: &str = "LeastLoaded";

/// One policy.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyResult {
    /// Its name.
    pub policy: &'static str,
    /// Results by batch size.
    pub batches: Vec<BatchResult>,
}

/// One policy at one batch size.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchResult {
    /// Requests per worker.
    pub batch: u16,
    /// Distinct experts per layer and step that a request sees.
    pub distinct: Mean,
    /// Change against `LeastLoaded`, as a fraction, paired by repeat: -0.1 = 10 % fewer.
    pub change: Mean,
    /// Busiest worker's requests over the mean.
    pub busiest: Mean,
    /// The same for each domain, and for blends.
    pub kinds: Vec<KindResult>,
}

/// One policy at one batch size for one kind of request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KindResult {
    /// Domain, or `blended`.
    pub kind: String,
    /// Distinct experts per layer and step.
    pub distinct: Mean,
    /// Change against `LeastLoaded`, as a fraction.
    pub change: Mean,
}

/// A policy and what it knows.
struct Contestant<'a> {
    name: &'static str,
    /// Made anew for each run: some policies remember.
    policy: Box<dyn Fn() -> Box<dyn Policy> + 'a>,
    knowledge: Knowledge<'a>,
}

/// Runs of one policy, by batch size, one for each repeat.
type Runs = BTreeMap<(usize, u16), Vec<Seen>>;

/// Simulates every policy at every batch size, for every split.
pub(super) fn measure(args: &StudyArgs, requests: &Requests<'_>) -> Result<Vec<PolicyResult>, Error> {
    let workers = usize::from(args.workers);
    let bar = Progress::bar("policies", u64::from(args.repeats), args.json);
    let (mut names, mut runs): (Vec<&'static str>, Runs) = (Vec::new(), Runs::new());
    for repeat in 0..u64::from(args.repeats) {
        let seed = args.seed.wrapping_add(repeat);
        let (fitted, held) = halves(requests.samples.len(), seed);
        let samples: Vec<Sample> = fitted.iter().map(|at| requests.samples[*at].clone()).collect();
        let ours = fit_table(&samples, workers, seed, Tau::Quantile(0.25))?;
        let eldr = fit_table(&samples, workers, seed, Tau::Fixed(ELDR_TAU))?;
        let held_samples: Vec<&Sample> = held.iter().map(|at| requests.samples[*at]).collect();
        let traffic = Traffic::new(
            held.iter()
                .filter_map(|at| Some((requests.samples[*at].decode_counts.as_ref()?, requests.kind(*at)))),
        );
        let (own, theirs) = (similarities(&ours, &held_samples)?, similarities(&eldr, &held_samples)?);
        let domains = (requests.domains.len() > 1).then(|| domain_similarities(requests, &held, workers));
        let fitted_samples: Vec<&Sample> = samples.iter().collect();
        let geometry = ours.fingerprint.geometry;
        let predictors = learn(&geometry, &fitted_samples, &LearnOptions::default()).map(|found| found.predictors);
        let expected = |ways: [bool; 2]| expected(predictors.as_ref()?, &held_samples, ways);
        let (text, learned) = (expected([true, false]), expected([true, true]));
        let own_frequencies: Option<Vec<Frequencies>> = held_samples
            .iter()
            .map(|sample| Frequencies::from_counts(sample.prefill_counts.as_ref()?).ok())
            .collect();
        let views = Views {
            own: &own,
            theirs: &theirs,
            domains: domains.as_deref(),
            prefill: own_frequencies.as_deref(),
            text: text.as_deref(),
            learned: learned.as_deref(),
        };
        let contestants = contestants(&ours, views);
        names = contestants.iter().map(|contestant| contestant.name).collect();
        for (at, contestant) in contestants.iter().enumerate() {
            for batch in &args.batch {
                let size = Size {
                    workers,
                    batch: usize::from(*batch),
                    seed,
                };
                if let Some(seen) = traffic.run((contestant.policy)().as_ref(), &contestant.knowledge, &size) {
                    runs.entry((at, *batch)).or_default().push(seen);
                }
            }
        }
        bar.tick();
    }
    if runs.is_empty() {
        let message = format!(
            "half of {} requests do not fill {workers} workers with any of these batches: give a smaller --batch or fewer --workers",
            requests.samples.len()
        );
        return Err(Error::input("TooFewSamples", message));
    }
    Ok(results(requests, &names, &runs))
}

/// Requests to fit and requests to evaluate, each half in its own order.
pub(super) fn halves(count: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..count).collect();
    order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    let held = order.split_off(count / 2);
    (order, held)
}

fn fit_table(samples: &[Sample], clusters: usize, seed: u64, tau: Tau) -> Result<CentroidTable, Error> {
    let options = FitOptions {
        clusters,
        seed,
        tau,
        ..FitOptions::default()
    };
    let fitted = fit(samples, &options, None);
    fitted
        .map(|(table, _)| table)
        .map_err(|error| Error::input("FitFailed", error.to_string()))
}

/// Similarity of each request to each worker, [N, W]; worker i serves cluster i.
fn similarities(table: &CentroidTable, samples: &[&Sample]) -> Result<Vec<f32>, Error> {
    let refused = |what: String| Error::input("DoNotFit", what);
    let mut signature = vec![0.0; table.transform.dim()];
    let mut out = vec![0.0; samples.len() * table.clusters()];
    for (sample, row) in samples.iter().zip(out.chunks_exact_mut(table.clusters())) {
        if let Some(counts) = &sample.prefill_counts {
            table
                .transform
                .signature(counts, &mut signature)
                .map_err(|error| refused(error.to_string()))?;
            scores(table, &signature, row).map_err(|error| refused(error.to_string()))?;
        }
    }
    Ok(out)
}

/// Expected decode frequencies of each request, from its text, its prefill counts, or both; `None` where text alone is asked for and a
/// request or the predictors have none.
fn expected(
    predictors: &Predictors,
    samples: &[&Sample],
    [by_text, by_prefill]: [bool; 2],
) -> Option<Vec<Frequencies>> {
    let geometry = predictors.geometry();
    let mut scratch = Scratch::new(geometry);
    let mut values = vec![0.0; geometry.cells()];
    samples
        .iter()
        .map(|sample| {
            let counter = NgramCounter::from_ngrams(&sample.ngrams);
            let text = (by_text && !sample.ngrams.is_empty() && predictors.text().is_some()).then_some(&counter);
            let prefill = sample.prefill_counts.as_ref().filter(|_| by_prefill);
            if text.is_none() && prefill.is_none() {
                return None;
            }
            predictors
                .predict_into(Evidence { text, prefill }, &mut scratch, &mut values)
                .ok()?;
            Frequencies::new(geometry, &values).ok()
        })
        .collect()
}

/// Domains dealt to workers by their traffic, and which workers each request's are.
fn domain_similarities(requests: &Requests<'_>, held: &[usize], workers: usize) -> Vec<f32> {
    let numbers = |at: usize| {
        let halves = requests.labels[at].split('+');
        halves.filter_map(|half| requests.domains.iter().position(|name| name == half))
    };
    let mut shares = vec![0.0; requests.domains.len()];
    for domain in held.iter().flat_map(|at| numbers(*at)) {
        shares[domain] += 1.0;
    }
    let names: Vec<String> = (0..workers).map(|worker| format!("worker-{worker:04}")).collect();
    let dealt = assign(&shares, &names, &BTreeMap::default());
    let mut out = vec![0.0; held.len() * workers];
    for (at, row) in held.iter().zip(out.chunks_exact_mut(workers)) {
        for (worker, similarity) in row.iter_mut().enumerate() {
            let serves = |domain: usize| dealt.clusters_of(worker).contains(&(domain as u32));
            *similarity = f32::from(u8::from(numbers(*at).any(serves)));
        }
    }
    out
}

/// Similarities of requests to workers, [N, W].
#[derive(Clone, Copy)]
struct Views<'a> {
    /// Under our table.
    own: &'a [f32],
    /// Under ELDR's.
    theirs: &'a [f32],
    /// 1 for workers of the request's true domain, else 0; a blend has two.
    domains: Option<&'a [f32]>,
    /// Expected decode frequencies: the request's own prefill frequencies.
    prefill: Option<&'a [Frequencies]>,
    /// Of its text alone.
    text: Option<&'a [Frequencies]>,
    /// Of all that it comes with.
    learned: Option<&'a [Frequencies]>,
}

fn contestants<'a>(ours: &'a CentroidTable, views: Views<'a>) -> Vec<Contestant<'a>> {
    let blind = |name, policy: fn() -> Box<dyn Policy>| Contestant {
        name,
        policy: Box::new(policy),
        knowledge: Knowledge::default(),
    };
    let mut all = vec![
        blind(BASE, || Box::new(LeastLoaded)),
        blind("RoundRobin", || Box::<RoundRobin>::default()),
        blind("PowerOfTwoChoices", || Box::new(PowerOfTwoChoices)),
        blind("Random", || Box::new(Random)),
    ];
    if let Some(similarity) = views.domains {
        all.push(Contestant {
            name: "Domain oracle",
            policy: Box::new(|| {
                Box::new(LocalityBand {
                    tau: 0.0,
                    min_candidates: 1,
                    max_load_ratio: Some(MAX_LOAD_RATIO),
                    ties: Ties::Spread,
                })
            }),
            knowledge: Knowledge {
                similarity: Some(similarity),
                ..Knowledge::default()
            },
        });
    }
    all.push(Contestant {
        name: "LocalityBand, ELDR's rule",
        policy: Box::new(|| {
            Box::new(LocalityBand {
                tau: ELDR_TAU,
                min_candidates: 1,
                max_load_ratio: None,
                ties: Ties::LowestIndex,
            })
        }),
        knowledge: Knowledge {
            similarity: Some(views.theirs),
            ..Knowledge::default()
        },
    });
    all.push(Contestant {
        name: "LocalityBand, ours",
        policy: Box::new(|| {
            Box::new(LocalityBand {
                tau: ours.tau,
                min_candidates: 1,
                max_load_ratio: Some(MAX_LOAD_RATIO),
                ties: Ties::Spread,
            })
        }),
        knowledge: Knowledge {
            similarity: Some(views.own),
            ..Knowledge::default()
        },
    });
    let geometry = ours.fingerprint.geometry;
    let marginal = |name, frequencies: Option<&'a [Frequencies]>, similarity: Option<&'a [f32]>| Contestant {
        name,
        policy: Box::new(move || Box::new(MarginalCost::new(&geometry))),
        knowledge: Knowledge {
            similarity,
            frequencies,
        },
    };
    all.push(marginal("MarginalCost, own prefill", views.prefill, None));
    if views.text.is_some() {
        all.push(marginal("MarginalCost, text", views.text, None));
    }
    if views.learned.is_some() {
        all.push(marginal("MarginalCost, learned", views.learned, None));
        all.push(marginal(
            "MarginalCost, learned and table",
            views.learned,
            Some(views.own),
        ));
    }
    all
}

fn results(requests: &Requests<'_>, names: &[&'static str], runs: &Runs) -> Vec<PolicyResult> {
    let base = |batch: u16| runs.get(&(0, batch)).map_or(&[][..], Vec::as_slice);
    let batch_result = |batch: u16, seen: &[Seen]| {
        let change = |of: &dyn Fn(&Seen) -> Option<f64>| {
            let pairs = seen.iter().zip(base(batch));
            Mean::of(pairs.filter_map(|(own, base)| Some(of(own)? / of(base)? - 1.0)))
        };
        let kinds = seen.first().map_or(0, |seen| seen.by_kind.len());
        let of_kind = |kind: usize| move |seen: &Seen| seen.by_kind.get(kind).copied().flatten();
        BatchResult {
            batch,
            distinct: Mean::of(seen.iter().map(|seen| seen.distinct)),
            change: change(&|seen| Some(seen.distinct)),
            busiest: Mean::of(seen.iter().map(|seen| seen.busiest)),
            kinds: (0..kinds)
                .filter(|kind| seen.iter().any(|seen| of_kind(*kind)(seen).is_some()))
                .map(|kind| KindResult {
                    kind: requests.kind_name(kind),
                    distinct: Mean::of(seen.iter().filter_map(of_kind(kind))),
                    change: change(&of_kind(kind)),
                })
                .collect(),
        }
    };
    let policy_result = |(at, name): (usize, &&'static str)| PolicyResult {
        policy: name,
        batches: runs
            .iter()
            .filter(|((policy, _), _)| *policy == at)
            .map(|((_, batch), seen)| batch_result(*batch, seen))
            .collect(),
    };
    names.iter().enumerate().map(policy_result).collect()
}
