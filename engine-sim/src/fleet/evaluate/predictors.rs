//! Predictors, text among them: with few and many calibration samples, and with domains that calibration has not seen.

use std::fmt::Write;

use anyhow::Result;

use super::recorded::{LOADS, signed};
use super::{Document, Evaluation};
use crate::fleet::compare::{Case, CaseResult, ContenderResult, Metric, compare_apart};
use crate::fleet::gates::{Recording, RequestGates};
use crate::fleet::steering::{Calibration, Contender, Predictor, Rule};

/// Decode workers.
const WORKERS: usize = 8;
/// Seeds at most: there are many comparisons.
const SEEDS: usize = 5;
/// Calibration samples besides all of them.
const SIZES: [usize; 3] = [500, 250, 100];
/// Domains held out of calibration at once.
const UNSEEN: usize = 3;

const RULES: [Rule; 3] = [Rule::EldrStatic, Rule::LocalityBand, Rule::MarginalCost];

/// Calibration requests by the name that tables give them.
type Calibrated = (String, Calibration);

impl Evaluation {
    pub(super) fn predictors(&self, document: &mut Document) -> Result<()> {
        let held_out = spread(self.recording.domain_names.len(), UNSEEN);
        let unseen = |r: &RequestGates| r.domains.iter().any(|d| held_out.contains(&usize::from(*d)));
        let names: Vec<&str> = held_out
            .iter()
            .map(|d| self.recording.domain_names[*d].as_str())
            .collect();
        let (calibrating, judged) = self.recording.halves();
        let by_size = sizes(&calibrating, &judged);
        let without = calibrating.filtered(|r| !unseen(r));
        let held = format!(
            "Held out: {}. {} of {} calibration requests are left; {} of {} judged requests have something of them.\n\n",
            names.join(", "),
            without.len(),
            calibrating.len(),
            judged.requests.iter().filter(|r| unseen(r)).count(),
            judged.len()
        );
        let without: Calibrated = ("held out".to_owned(), Calibration::new(without, judged));
        let mut all = Vec::new();
        for (load, batch) in LOADS {
            let case = self.case(load, WORKERS, batch);
            let balancers = Rule::ALL.into_iter().filter(|r| r.is_load_balancer());
            let balancers: Vec<Contender> = balancers.map(|r| Contender::new(r, Predictor::None)).collect();
            let balanced = self.shown_apart(&case, &balancers, &unseen)?;
            let contenders = Contender::all(&RULES, &Predictor::ALL);
            let results = (by_size.iter().chain([&without]))
                .map(|(_, calibration)| {
                    let case = Case {
                        calibration,
                        ..case.clone()
                    };
                    let mut result = self.shown_apart(&case, &contenders, &unseen)?;
                    result.contenders.splice(0..0, balanced.contenders.iter().cloned());
                    Ok(result)
                })
                .collect::<Result<Vec<CaseResult>>>()?;
            let (last, sized) = results.split_last().map_or((None, &[][..]), |(l, s)| (Some(l), s));
            let sizes: Vec<&str> = by_size.iter().map(|(name, _)| name.as_str()).collect();
            document.table(&format!("predictors-{load}"), by_samples(&sizes, sized));
            if let (Some(seen), Some(unseen)) = (sized.first(), last) {
                document.table(
                    &format!("predictors-unseen-{load}"),
                    format!("{held}{}", by_domains(seen, unseen)),
                );
            }
            all.push(results);
        }
        document.data("predictors", &all)
    }

    fn shown_apart(
        &self,
        case: &Case<'_>,
        contenders: &[Contender],
        apart: &(dyn Fn(&RequestGates) -> bool + Sync),
    ) -> Result<CaseResult> {
        let seeds = self.seeds();
        let seeds = &seeds[..seeds.len().min(SEEDS)];
        Ok(compare_apart(case, contenders, seeds, apart, &|| ())?)
    }
}

/// All calibration requests, and the first so many of them.
fn sizes(calibrating: &Recording, judged: &Recording) -> Vec<Calibrated> {
    let sizes = SIZES.into_iter().filter(|size| *size < calibrating.len());
    std::iter::once(calibrating.len())
        .chain(sizes)
        .map(|size| {
            let (first, _) = calibrating.split_at(size);
            (format!("{size} samples"), Calibration::new(first, judged.clone()))
        })
        .collect()
}

/// `count` positions of `from`, spread evenly and away from the ends.
fn spread(from: usize, count: usize) -> Vec<usize> {
    let count = count.min(from);
    (0..count).map(|i| (2 * i + 1) * from / (2 * count)).collect()
}

/// Contenders that are no load balancers, with their places.
fn predicting(result: &CaseResult) -> impl Iterator<Item = (usize, &ContenderResult)> {
    let contenders = result.contenders.iter().enumerate();
    contenders.filter(|(_, c)| !c.contender.rule.is_load_balancer())
}

/// One metric's change against the best load balancer of the same run.
fn cell(result: &CaseResult, contender: usize, metric: Metric) -> String {
    let change = (result.contenders.get(contender)).and_then(|c| result.change(c, metric));
    change.map_or_else(String::new, |c| signed(c.best))
}

fn header(out: &mut String, columns: &[&str]) {
    out.push_str("| policy |");
    for column in columns {
        let _ = write!(out, " {column}: p50 | p99 |");
    }
    let _ = writeln!(out, "\n|---|{}", "---|---|".repeat(columns.len()));
}

/// Columns are numbers of calibration samples.
fn by_samples(names: &[&str], results: &[CaseResult]) -> String {
    let mut out = String::new();
    header(&mut out, names);
    for (at, contender) in results.first().into_iter().flat_map(predicting) {
        let _ = write!(out, "| {} |", contender.contender);
        for result in results {
            for metric in [Metric::TpotP50, Metric::TpotP99] {
                let _ = write!(out, " {} |", cell(result, at, metric));
            }
        }
        out.push('\n');
    }
    out
}

/// Columns: all requests and those of the held-out domains, with calibration on everything and without these domains.
fn by_domains(seen: &CaseResult, unseen: &CaseResult) -> String {
    let mut out = String::new();
    header(
        &mut out,
        &[
            "all requests, nothing held out",
            "all requests, held out",
            "requests of these domains, nothing held out",
            "requests of these domains, held out",
        ],
    );
    for (at, contender) in predicting(seen) {
        let _ = write!(out, "| {} |", contender.contender);
        // Compared apart, the requests of these domains stand where blended ones do elsewhere.
        for metrics in [
            [Metric::TpotP50, Metric::TpotP99],
            [Metric::BlendedP50, Metric::BlendedP99],
        ] {
            for result in [seen, unseen] {
                for metric in metrics {
                    let _ = write!(out, " {} |", cell(result, at, metric));
                }
            }
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
#[path = "predictors_tests.rs"]
mod tests;
