//! How near generated gates come to what was asked for.

use std::fmt;

use serde::Serialize;

use crate::fleet::gates::Statistics;

/// Statistics beside their targets. Its text is a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Match {
    /// What was asked for.
    pub target: Statistics,
    /// What was reached.
    pub reached: Statistics,
}

impl Match {
    /// Squared misses, each in units of what is a noticeable one, divided by their number; 1 means noticeable on average. Targets that are free do
    /// not count.
    pub fn error(&self) -> f64 {
        let misses: Vec<f64> = self.rows().iter().filter_map(Row::miss).collect();
        misses.iter().map(|m| m * m).sum::<f64>() / misses.len().max(1) as f64
    }

    fn rows(&self) -> Vec<Row> {
        let (t, r) = (&self.target, &self.reached);
        let row = |name: String, target, reached, tolerance| Row {
            name,
            target,
            reached,
            tolerance,
        };
        let mut rows = vec![
            row(
                "per-expert prefill-decode correlation".to_owned(),
                t.expert_correlation,
                r.expert_correlation,
                0.02,
            ),
            row("rho".to_owned(), t.rho, r.rho, 0.03),
        ];
        for (batch, target) in &t.distinct {
            let name = format!("distinct experts of a layer, batch {batch}");
            rows.push(row(name, Some(*target), r.distinct.get(batch).copied(), 0.03 * target));
        }
        rows.push(row(
            "saving of same-domain batches of 16".to_owned(),
            t.domain_saving,
            r.domain_saving,
            0.01,
        ));
        rows.push(row(
            "overlap within a domain".to_owned(),
            t.overlap_within,
            r.overlap_within,
            0.03,
        ));
        rows.push(row(
            "overlap between domains".to_owned(),
            t.overlap_between,
            r.overlap_between,
            0.03,
        ));
        rows.push(row("experts kept from token to token".to_owned(), t.kept, r.kept, 0.03));
        rows
    }
}

struct Row {
    name: String,
    target: Option<f64>,
    reached: Option<f64>,
    tolerance: f64,
}

impl Row {
    fn miss(&self) -> Option<f64> {
        Some((self.reached? - self.target?) / self.tolerance.max(f64::MIN_POSITIVE))
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<40} {:>9} {:>9} {:>9}", "statistic", "target", "reached", "miss")?;
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.3}"));
        for row in self.rows() {
            let miss = row.reached.zip(row.target).map(|(r, t)| r - t);
            writeln!(
                f,
                "{:<40} {:>9} {:>9} {:>9}",
                row.name,
                number(row.target),
                number(row.reached),
                miss.map_or("-".to_owned(), |m| format!("{m:+.3}"))
            )?;
        }
        Ok(())
    }
}
