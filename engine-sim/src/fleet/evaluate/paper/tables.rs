//! Published beside simulated, as tables and figures.

use std::fmt::Write;

use super::super::recorded::signed;
use super::published::{Rate, mean_change};
use super::traffic::Traffic;
use super::{FEW, RULES, Setting, Tried};
use crate::fleet::compare::{CaseResult, ContenderResult, Interval, Metric};
use crate::fleet::gates::generate::Shape;
use crate::fleet::gates::{DOMAIN_BATCH, Statistics};
use crate::fleet::plot::{Bars, Group};
use crate::fleet::steering::Rule;

/// A mix's setting with its results, one for each rate.
type Found = (Setting, Vec<CaseResult>);
/// One statistic.
type Value = fn(&Statistics) -> Option<f64>;

const METRICS: [Metric; 2] = [Metric::TpotP50, Metric::TpotP99];
/// In the tables by rate.
const SHOWN: [Rule; 4] = [
    Rule::EldrOnline,
    Rule::EldrStatic,
    Rule::LocalityBand,
    Rule::MarginalCost,
];

fn of(result: &CaseResult, rule: Rule) -> Option<&ContenderResult> {
    result.contenders.iter().find(|c| c.contender.rule == rule)
}

/// Changes against round robin in percent, seed by seed.
fn changes(result: &CaseResult, rule: Rule, metric: Metric) -> Vec<f64> {
    let pairs = of(result, rule).zip(of(result, Rule::RoundRobin));
    let runs = pairs
        .into_iter()
        .flat_map(|(ours, theirs)| ours.runs.iter().zip(&theirs.runs));
    runs.map(|(ours, theirs)| (metric.of(ours) / metric.of(theirs) - 1.0) * 100.0)
        .collect()
}

fn change(result: &CaseResult, rule: Rule, metric: Metric) -> Interval {
    Interval::of(&changes(result, rule, metric))
}

/// Mean of the rates, seed by seed.
fn mean_of_rates(results: &[CaseResult], rule: Rule, metric: Metric) -> Interval {
    let by_rate: Vec<Vec<f64>> = results.iter().map(|r| changes(r, rule, metric)).collect();
    let seeds = by_rate.iter().map(Vec::len).min().unwrap_or(0);
    let of_seed = |seed: usize| by_rate.iter().filter_map(|r| r.get(seed)).sum::<f64>() / by_rate.len() as f64;
    Interval::of(&(0..seeds).map(of_seed).collect::<Vec<_>>())
}

fn head(out: &mut String, columns: &[String]) {
    let _ = writeln!(out, "| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
}

/// Changes against round robin of one mix, rate by rate.
pub(super) fn by_rate(traffic: &Traffic, results: &[CaseResult]) -> String {
    let mut columns = vec!["requests/s".to_owned(), "ELDR published p50".into(), "p99".into()];
    columns.extend(SHOWN.iter().flat_map(|rule| [format!("{rule} p50"), "p99".to_owned()]));
    let mut out = String::new();
    head(&mut out, &columns);
    for (rate, result) in traffic.rates.iter().zip(results) {
        let [p50, p99] = rate.change();
        let _ = write!(out, "| {} | {p50:+.1} | {p99:+.1} |", rate.per_s);
        for rule in SHOWN {
            for metric in METRICS {
                let _ = write!(out, " {} |", signed(change(result, rule, metric)));
            }
        }
        out.push('\n');
    }
    let [p50, p99] = mean_change(traffic.rates);
    let _ = write!(out, "| mean | {p50:+.1} | {p99:+.1} |");
    for rule in SHOWN {
        for metric in METRICS {
            let _ = write!(out, " {} |", signed(mean_of_rates(results, rule, metric)));
        }
    }
    out
}

/// p50 of the same.
pub(super) fn figure(traffic: &Traffic, results: &[CaseResult]) -> String {
    let mut names = vec!["ELDR, published".to_owned()];
    names.extend(SHOWN.iter().map(|rule| format!("{rule}, simulated")));
    let group = |(rate, result): (&Rate, &CaseResult)| Group {
        name: rate.per_s.to_string(),
        bars: std::iter::once((rate.change()[0], 0.0))
            .chain(SHOWN.iter().map(|rule| {
                let found = change(result, *rule, Metric::TpotP50);
                (found.mean, found.half_width)
            }))
            .collect(),
    };
    Bars {
        title: format!("TPOT p50 against round robin, {} mix", traffic.name),
        x: "requests a second".into(),
        y: "change in %".into(),
        names,
        groups: traffic.rates.iter().zip(results).map(group).collect(),
    }
    .svg()
}

/// Round robin in milliseconds.
pub(super) fn absolute(found: &[Found]) -> String {
    let mut out = String::from(
        "| mix | requests/s | p50 published | simulated | p99 published | simulated | TTFT p50 published | simulated | requests per step | experts per layer |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (setting, results) in found {
        for (rate, result) in setting.traffic.rates.iter().zip(results) {
            let Some(ours) = of(result, Rule::RoundRobin) else {
                continue;
            };
            let _ = writeln!(
                out,
                "| {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {} | {:.1} | {:.0} | {:.1} |",
                setting.traffic.name,
                rate.per_s,
                rate.round_robin[0],
                ours.mean(|s| s.tpot_ms.p50),
                rate.round_robin[1],
                ours.mean(|s| s.tpot_ms.p99),
                rate.ttft.map_or_else(|| "-".to_owned(), |t| format!("{t:.1}")),
                ours.mean(|s| s.ttft_ms.p50),
                ours.mean(|s| s.batch),
                ours.mean(|s| s.distinct_of_tokens),
            );
        }
    }
    out
}

/// Changes of every policy against round robin, means of the rates.
pub(super) fn means(found: &[Found]) -> String {
    let mut columns = vec!["policy".to_owned()];
    for (setting, _) in found {
        let name = setting.traffic.name;
        columns.extend([
            format!("{name}: p50 published"),
            "simulated".to_owned(),
            "p99 published".to_owned(),
            "simulated".to_owned(),
        ]);
    }
    let mut out = String::new();
    head(&mut out, &columns);
    for rule in RULES.into_iter().filter(|r| *r != Rule::RoundRobin) {
        let _ = write!(out, "| {rule} |");
        for (setting, results) in found {
            let published = match rule {
                Rule::EldrOnline => mean_change(setting.traffic.rates).map(Some),
                _ => (setting.traffic.others.iter())
                    .find(|(other, _)| *other == rule)
                    .map_or([None; 2], |(_, change)| *change),
            };
            for (metric, published) in METRICS.into_iter().zip(published) {
                let published = published.map_or_else(|| "-".to_owned(), |c| format!("{c:+.1}"));
                let _ = write!(out, " {published} | {} |", signed(mean_of_rates(results, rule, metric)));
            }
        }
        out.push('\n');
    }
    out
}

/// Statistics of the gates of each mix, beside what is published, what the preset was fitted to, and the recording's.
pub(super) fn gates(found: &[Found], recorded: &Statistics) -> String {
    let mut columns = ["statistic", "published", "preset fitted to"]
        .map(str::to_owned)
        .to_vec();
    columns.extend(found.iter().map(|(s, _)| format!("{} mix", s.traffic.name)));
    columns.push("recorded tiny MoE".to_owned());
    let mut out = String::new();
    head(&mut out, &columns);
    let target = Shape::Qwen3A3b.target().unwrap_or_default();
    let rows: [(&str, &str, Value); 8] = [
        ("per-expert prefill-decode correlation", "0.70 to 0.92", |s| {
            s.expert_correlation
        }),
        ("rho", "0.76", |s| s.rho),
        ("distinct experts of a layer, batch 16", "-", |s| {
            s.distinct.get(&16).copied()
        }),
        ("distinct experts of a layer, batch 64", "-", |s| {
            s.distinct.get(&64).copied()
        }),
        ("saving of same-domain batches of 16", "-", |s| s.domain_saving),
        ("overlap within a domain", "-", |s| s.overlap_within),
        ("overlap between domains", "-", |s| s.overlap_between),
        ("experts kept from token to token", "-", |s| s.kept),
    ];
    for (name, published, value) in rows {
        let number = |s: &Statistics| value(s).map_or_else(|| "-".to_owned(), |v| format!("{v:.2}"));
        let _ = write!(out, "| {name} | {published} | {} |", number(&target));
        for (setting, _) in found {
            let _ = write!(out, " {} |", number(&setting.statistics));
        }
        let _ = writeln!(out, " {} |", number(recorded));
    }
    out
}

/// The same fleet over gates of other parameters, one rate.
pub(super) fn strength(tried: &[Tried]) -> String {
    let mut columns = ["gates", "mix"].map(str::to_owned).to_vec();
    columns.push(format!("saving of same-domain batches of {DOMAIN_BATCH}"));
    columns.push("RoundRobin p50, ms".to_owned());
    let shown = || FEW.into_iter().filter(|r| *r != Rule::RoundRobin);
    columns.extend(shown().flat_map(|rule| [format!("{rule} p50"), "p99".to_owned()]));
    let mut out = String::new();
    head(&mut out, &columns);
    let mut row = |gates: &str, mix: &str, statistics: &Statistics, result: &CaseResult| {
        let saving = statistics
            .domain_saving
            .map_or_else(|| "-".to_owned(), |s| format!("{:.0} %", s * 100.0));
        let base = of(result, Rule::RoundRobin).map_or(0.0, |c| c.mean(|s| s.tpot_ms.p50));
        let _ = write!(out, "| {gates} | {mix} | {saving} | {base:.2} |");
        for rule in shown() {
            for metric in METRICS {
                let _ = write!(out, " {} |", signed(change(result, rule, metric)));
            }
        }
        out.push('\n');
    };
    for tried in tried {
        for (gates, (statistics, result)) in [
            ("Qwen3 preset", &tried.preset),
            ("fitted to the recording", &tried.recording),
        ] {
            row(gates, tried.mix, statistics, result);
        }
    }
    out
}
