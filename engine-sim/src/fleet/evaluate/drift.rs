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

/// Seconds, then p50, p99 and mean of TPOT in milliseconds.
type Point = [f64; 4];
const P50: usize = 1;
const P99: usize = 2;
const MEAN: usize = 3;

/// Each rule's values over time, means over seeds.
type OverTime = Vec<(Rule, Vec<Point>)>;

struct Drifting {
    name: &'static str,
    /// In figures' names.
    file: &'static str,
    /// Domains that calibration has seen.
    before: Vec<String>,
    mix: Mix,
}

impl Evaluation {
    pub(super) fn drift(&self, document: &mut Document) -> Result<()> {
        let mut table = String::from(
            "| workload | policy | p50 before | after | p99 before | after | mean before | after | worse than LeastLoaded from, p50 | p99 |\n|---|---|---|---|---|---|---|---|---|---|\n",
        );
        let mut all = Vec::new();
        for drifting in self.workloads() {
            let series = self.over_time(&drifting)?;
            rows(&mut table, &drifting, &series);
            for (name, of) in [("p50", P50), ("p99", P99)] {
                let lines = Lines {
                    title: format!("TPOT {name}: {}", drifting.name),
                    x: "seconds".into(),
                    y: "change against LeastLoaded in %".into(),
                    series: changes(&series, of),
                    marks: vec![(FROM_S, "change begins".into()), (TO_S, "ends".into())],
                };
                document.figure(&format!("drift-{}-{name}", drifting.file), lines.svg());
            }
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
                file: "halves",
                before: owned(first),
                mix: Mix::drift(first, rest, FROM_S, TO_S),
            },
            Drifting {
                name: "an unseen domain takes half of the traffic",
                file: "unseen",
                before: owned(known),
                mix: Mix::appear(known, last, 0.5, FROM_S),
            },
            Drifting {
                name: "all but two domains vanish",
                file: "vanish",
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
                file: "blends",
                before: owned(&usable),
                mix: blending,
            });
        }
        workloads
    }

    /// Means over seeds at each moment, by rule.
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
                let mut sums: Vec<Point> = Vec::new();
                let seeds = &seeds[..seeds.len().min(5)];
                for seed in seeds {
                    let arrivals = workload.arrivals(&judged, *seed)?;
                    let outcome = case.run(&contender, &arrivals, *seed)?;
                    for (i, moment) in timeline(&outcome, EVERY_S).iter().enumerate() {
                        if i == sums.len() {
                            sums.push([moment.at_s, 0.0, 0.0, 0.0]);
                        }
                        let found = moment.tpot_ms;
                        for (sum, value) in sums[i].iter_mut().skip(1).zip([found.p50, found.p99, found.mean]) {
                            *sum += value / seeds.len() as f64;
                        }
                    }
                }
                Ok((*rule, sums))
            })
            .collect()
    }
}

/// Change of one value against the first rule's.
fn changes(series: &OverTime, of: usize) -> Vec<Series> {
    let Some((_, base)) = series.first() else {
        return Vec::new();
    };
    let change = |points: &[Point]| {
        let pairs = points.iter().zip(base).skip(1);
        pairs.map(|(p, b)| (p[0], (p[of] / b[of] - 1.0) * 100.0, 0.0)).collect()
    };
    (series.iter().skip(1))
        .map(|(rule, points)| Series {
            name: rule.to_string(),
            points: change(points),
        })
        .collect()
}

fn rows(table: &mut String, drifting: &Drifting, series: &OverTime) {
    let by_value = [P50, P99, MEAN].map(|of| changes(series, of));
    for (at, line) in by_value[0].iter().enumerate() {
        let _ = write!(table, "| {} | {} | ", drifting.name, line.name);
        for lines in &by_value {
            let mean = |from: f64, to: f64| {
                let within = lines[at].points.iter().filter(|p| (from..to).contains(&p.0));
                let (sum, n) = within.fold((0.0, 0.0), |(sum, n), p| (sum + p.1, n + 1.0));
                if n > 0.0 { sum / n } else { 0.0 }
            };
            let (before, after) = (mean(30.0, FROM_S), mean(TO_S + 20.0, LENGTH_S - 10.0));
            let _ = write!(table, "{before:+.1} | {after:+.1} | ");
        }
        for lines in &by_value[..2] {
            // Three points in a row: one alone may be chance.
            let points = &lines[at].points;
            let lasting = points
                .windows(3)
                .find(|w| w[0].0 > FROM_S && w.iter().all(|p| p.1 > 0.0));
            let _ = match lasting {
                Some(w) => write!(table, "{:.0} s | ", (w[0].0 - EVERY_S / 2.0 - FROM_S).max(0.0)),
                None => write!(table, "never | "),
            };
        }
        table.push('\n');
    }
}
