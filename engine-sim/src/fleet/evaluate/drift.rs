//! Drifting traffic: a fixed table, blind re-fit, re-fit on signal, and marginal cost, over time.

use std::fmt::Write;

use anyhow::Result;

use super::{Document, Evaluation};
use crate::fleet::compare::Case;
use crate::fleet::gates::Recording;
use crate::fleet::outcome::timeline;
use crate::fleet::plot::{Lines, Series};
use crate::fleet::simulate::Activity;
use crate::fleet::steering::{Calibration, Contender, Predictor, Rule};
use crate::fleet::workload::{Mix, Workload};

/// Seconds: a run, when traffic begins to change, when it has changed.
const LENGTH_S: f64 = 300.0;
const FROM_S: f64 = 90.0;
const TO_S: f64 = 180.0;
/// Seconds of each point.
const EVERY_S: f64 = 10.0;

const RULES: [Rule; 6] = [
    Rule::LeastLoaded,
    Rule::EldrStatic,
    Rule::LocalityBand,
    Rule::EldrOnline,
    Rule::BandOnSignal,
    Rule::MarginalCost,
];

/// Each rule's (seconds, mean p50 in milliseconds) over time.
type OverTime = Vec<(Rule, Vec<(f64, f64)>)>;

struct Drifting {
    name: &'static str,
    /// Domains that calibration has seen.
    before: Vec<String>,
    mix: Mix,
}

impl Evaluation {
    pub(super) fn drift(&self, document: &mut Document) -> Result<()> {
        let mut table = String::from("| workload | ");
        for rule in RULES.iter().skip(1) {
            let _ = write!(table, "{rule} before | after | ");
        }
        let _ = writeln!(
            table,
            "fixed table worse than none |\n|---|{}---|",
            "---|".repeat((RULES.len() - 1) * 2)
        );
        let mut all = Vec::new();
        for drifting in self.workloads() {
            let series = self.over_time(&drifting)?;
            row(&mut table, &drifting, &series);
            let lines = Lines {
                title: format!("TPOT p50, {}", drifting.name),
                x: "seconds".into(),
                y: "change against LeastLoaded in %".into(),
                series: changes(&series),
                marks: vec![(FROM_S, "change begins".into()), (TO_S, "ends".into())],
            };
            document.figure(&format!("drift-{}", drifting.name.replace(' ', "-")), lines.svg());
            all.push((drifting.name, series));
        }
        document.table("drift", table);
        document.data("drift", &all)
    }

    /// Four kinds of change, made of the recording's domains in the order of their names.
    fn workloads(&self) -> Vec<Drifting> {
        let names = &self.recording.domain_names;
        let pure = |name: &&String| {
            let at = self.recording.find_domain(name);
            at.is_some_and(|d| self.calibration.judged().of_domain(d).len() >= 20)
        };
        let usable: Vec<&str> = names.iter().filter(pure).map(String::as_str).collect();
        if usable.len() < 4 {
            return Vec::new();
        }
        let (first, rest) = usable.split_at(usable.len() / 2);
        let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        let (known, last) = (&usable[..usable.len() - 1], usable[usable.len() - 1]);
        let mut blending = Mix::drift(&usable, &usable, FROM_S, TO_S);
        if let Some(point) = blending.points.last_mut() {
            point.blended = 1.0;
        }
        let mut workloads = vec![
            Drifting {
                name: "one half of the domains gives way to the other",
                before: owned(first),
                mix: Mix::drift(first, rest, FROM_S, TO_S),
            },
            Drifting {
                name: "an unseen domain takes half of the traffic",
                before: owned(known),
                mix: Mix::appear(known, last, 0.5, FROM_S),
            },
            Drifting {
                name: "all but two domains vanish",
                before: owned(&usable),
                mix: Mix::drift(&usable, &usable[..2], FROM_S, FROM_S),
            },
        ];
        let blends = |name: &str| {
            let at = self.recording.find_domain(name);
            self.calibration
                .judged()
                .requests
                .iter()
                .any(|r| r.is_blended() && at.is_some_and(|d| r.domains.contains(&d)))
        };
        if usable.iter().all(|n| blends(n)) {
            workloads.push(Drifting {
                name: "prompts become blends of two domains",
                before: owned(&usable),
                mix: blending,
            });
        }
        workloads
    }

    /// Mean p50 over seeds at each moment, by rule.
    fn over_time(&self, drifting: &Drifting) -> Result<OverTime> {
        let seen = |r: &Recording| {
            r.filtered(|request| {
                let known = |d: &u16| {
                    let name = self.recording.domain_names.get(usize::from(*d));
                    name.is_some_and(|n| drifting.before.contains(n))
                };
                !request.is_blended() && request.domains.iter().all(known)
            })
        };
        let (calibrating, judged) = self.recording.halves();
        let calibration = Calibration::new(seen(&calibrating), judged.clone());
        let activity = Activity::new(&judged);
        let base = self.case(drifting.name, 8, 27.0);
        let case = Case {
            calibration: &calibration,
            activity: &activity,
            ..base
        };
        let workload = Workload {
            mix: drifting.mix.clone(),
            ..Workload::poisson(case.rate, LENGTH_S, activity.tokens(0))
        };
        let seeds = self.seeds();
        RULES
            .iter()
            .map(|rule| {
                let contender = Contender::new(*rule, Predictor::Prefill);
                let mut sums: Vec<(f64, f64, f64)> = Vec::new();
                for seed in seeds.iter().take(5) {
                    let arrivals = workload.arrivals(&judged, *seed)?;
                    let outcome = case.run(&contender, &arrivals, *seed)?;
                    for (i, moment) in timeline(&outcome, EVERY_S).iter().enumerate() {
                        if i == sums.len() {
                            sums.push((moment.at_s, 0.0, 0.0));
                        }
                        sums[i].1 += moment.tpot_ms.p50;
                        sums[i].2 += 1.0;
                    }
                }
                Ok((*rule, sums.into_iter().map(|(at, sum, n)| (at, sum / n)).collect()))
            })
            .collect()
    }
}

fn changes(series: &OverTime) -> Vec<Series> {
    let Some((_, base)) = series.first() else {
        return Vec::new();
    };
    let change = |points: &[(f64, f64)]| {
        let pairs = points.iter().zip(base).skip(1);
        pairs.map(|(p, b)| (p.0, (p.1 / b.1 - 1.0) * 100.0, 0.0)).collect()
    };
    (series.iter().skip(1))
        .map(|(rule, points)| Series {
            name: rule.to_string(),
            points: change(points),
        })
        .collect()
}

fn row(table: &mut String, drifting: &Drifting, series: &OverTime) {
    let _ = write!(table, "| {} | ", drifting.name);
    let mut worse = "never".to_owned();
    for line in changes(series) {
        let mean = |from: f64, to: f64| {
            let within: Vec<f64> = line
                .points
                .iter()
                .filter(|p| (from..to).contains(&p.0))
                .map(|p| p.1)
                .collect();
            within.iter().sum::<f64>() / within.len().max(1) as f64
        };
        let (before, after) = (mean(30.0, FROM_S), mean(TO_S + 20.0, LENGTH_S - 10.0));
        let _ = write!(table, "{before:+.1} | {after:+.1} | ");
        if line.name == Rule::EldrStatic.as_str()
            && let Some(point) = line.points.iter().find(|p| p.0 > FROM_S && p.1 > 0.0)
        {
            worse = format!("{:.0} s after the change begins", point.0 - FROM_S);
        }
    }
    let _ = writeln!(table, "{worse} |");
}
