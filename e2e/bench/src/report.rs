//! Results: tables for people, the same as JSON, and the bars that the project set itself.

use serde::Serialize;

/// One table of results.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Table {
    /// The name it has in `docs/performance.md` and after `--only`, as `route` or `route/stages`.
    pub(crate) name: String,
    /// Headings.
    pub(crate) columns: Vec<String>,
    /// Cells.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new<const N: usize>(name: &str, columns: [&str; N]) -> Self {
        Self {
            name: name.to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: Vec::new(),
        }
    }

    /// One more row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// Markdown, which reads well in a terminal too.
    pub(crate) fn markdown(&self) -> String {
        let width = |column: usize| {
            let cells = self
                .rows
                .iter()
                .chain([&self.columns])
                .filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let line = |cells: &[String]| {
            let padded = cells
                .iter()
                .enumerate()
                .map(|(column, cell)| format!(" {cell:<width$} |", width = width(column)));
            format!("|{}\n", padded.collect::<String>())
        };
        let rule = (0..self.columns.len()).fold(String::new(), |rule, column| {
            rule + &"-".repeat(width(column) + 2) + "|"
        });
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}|{rule}\n{rows}", line(&self.columns))
    }
}

/// What the project promised, and what came out.
#[derive(Debug)]
struct Bar {
    what: String,
    promised: String,
    measured: String,
    met: bool,
}

/// Everything a run found.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    /// Machine and versions.
    pub(crate) environment: serde_json::Value,
    /// In the order they were measured.
    pub(crate) tables: Vec<Table>,
    /// Of the running case.
    #[serde(skip)]
    bars: Vec<Bar>,
}

impl Report {
    /// Keeps a table and shows it.
    pub(crate) fn table(&mut self, table: Table) {
        println!("\n{}\n{}", table.name, table.markdown());
        self.tables.push(table);
    }

    /// Keeps a bar.
    pub(crate) fn bar(
        &mut self,
        what: impl Into<String>,
        bar: impl Into<String>,
        measured: impl Into<String>,
        met: bool,
    ) {
        self.bars.push(Bar {
            what: what.into(),
            promised: bar.into(),
            measured: measured.into(),
            met,
        });
    }

    /// Ends a case: its bars become a table, with how busy the machine was around it.
    pub(crate) fn close(&mut self, case: &str, loads: [f64; 2]) {
        let mut table = Table::new(&format!("{case}/bars"), ["what", "bar", "measured", "met"]);
        for bar in std::mem::take(&mut self.bars) {
            let met = if bar.met { "yes" } else { "**no**" };
            table.row([bar.what, bar.promised, bar.measured, met.to_owned()]);
        }
        let [before, after] = loads;
        let load = format!("{before} and {after}");
        let what = "load average of the machine, before and after".to_owned();
        table.row([what, String::new(), load, String::new()]);
        self.table(table);
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new("t", ["a", "time"]);
        table.row(["long".into(), "1 µs".into()]);
        assert_eq!(table.markdown(), "| a    | time |\n|------|------|\n| long | 1 µs |\n");
    }
}
