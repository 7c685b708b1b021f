//! What tables and samples hold, for people and as JSON.
//!
//! JSON keys are camelCase and numbers are numbers; keys may be added, none changes its meaning. See docs/calibrator.md.

mod samples;
mod table;

pub use samples::{SampleSummary, Tally};
pub use table::TableSummary;

/// Lines of name and value, those without a value left out.
pub fn lines<'a>(fields: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let lines: Vec<String> = fields
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| format!("{name:<20} {value}")))
        .collect();
    lines.join("\n")
}

/// A table of text: columns as wide as their longest cell, the first left-aligned and the others right-aligned.
pub fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            if at == 0 {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// One JSON line.
pub fn json(value: &impl serde::Serialize) -> String {
    // Summaries have string keys only, which is all that can fail.
    serde_json::to_string(value).unwrap_or_default()
}
