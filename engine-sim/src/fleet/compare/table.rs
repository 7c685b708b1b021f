//! Results as tables: aligned text for terminals, Markdown for documents.

use std::fmt::Write;

use super::interval::Interval;
use super::result::{CaseResult, Metric};

const METRICS: [(&str, Metric); 6] = [
    ("p50", Metric::TpotP50),
    ("p99", Metric::TpotP99),
    ("pure p50", Metric::PureP50),
    ("pure p99", Metric::PureP99),
    ("blended p50", Metric::BlendedP50),
    ("blended p99", Metric::BlendedP99),
];

fn signed(interval: Interval) -> String {
    format!("{:+.1} ± {:.1}", interval.mean, interval.half_width)
}

fn rows(result: &CaseResult) -> Vec<Vec<String>> {
    let mut header = vec!["policy".to_owned(), "p50 ms".into(), "p99 ms".into()];
    header.extend(METRICS.iter().take(2).map(|(name, _)| format!("{name} vs best")));
    header.extend(METRICS.iter().take(2).map(|(name, _)| format!("{name} vs LeastLoaded")));
    header.extend(METRICS.iter().skip(2).map(|(name, _)| format!("{name} vs best")));
    header.extend(["experts".into(), "batch".into(), "skew".into()]);
    let mut rows = vec![header];
    for contender in &result.contenders {
        let mut row = vec![
            contender.contender.to_string(),
            format!("{:.2}", contender.mean(|s| s.tpot_ms.p50)),
            format!("{:.2}", contender.mean(|s| s.tpot_ms.p99)),
        ];
        let changes: Vec<_> = METRICS.iter().map(|(_, m)| result.change(contender, *m)).collect();
        let best = |i: usize| changes[i].map_or_else(|| "-".to_owned(), |c| signed(c.best));
        let least = |i: usize| changes[i].map_or_else(|| "-".to_owned(), |c| signed(c.least_loaded));
        row.extend([best(0), best(1), least(0), least(1)]);
        row.extend((2..METRICS.len()).map(best));
        row.push(format!("{:.1}", contender.mean(|s| s.distinct_of_tokens)));
        row.push(format!("{:.1}", contender.mean(|s| s.batch)));
        row.push(format!("{:.2}", contender.mean(|s| s.skew)));
        rows.push(row);
    }
    rows
}

/// Columns aligned with spaces.
pub fn text(result: &CaseResult) -> String {
    let rows = rows(result);
    let columns = rows.first().map_or(0, Vec::len);
    let width = |c: usize| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = heading(result);
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            let pad = width - cell.chars().count();
            let _ = write!(out, "{cell}{:pad$}  ", "");
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// A Markdown table under its heading.
pub fn markdown(result: &CaseResult) -> String {
    let mut out = heading(result);
    out.push('\n');
    for (i, row) in rows(result).iter().enumerate() {
        let _ = writeln!(out, "| {} |", row.join(" | "));
        if i == 0 {
            let _ = writeln!(out, "|{}", "---|".repeat(row.len()));
        }
    }
    out
}

fn heading(result: &CaseResult) -> String {
    format!(
        "{}: {} workers, {:.1} requests/s, {} seeds; changes in %, mean ± half-width of the 95 % interval, paired by arrivals\n",
        result.case,
        result.workers,
        result.rate,
        result.seeds.len()
    )
}
