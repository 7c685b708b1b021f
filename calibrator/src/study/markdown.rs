//! Results as Markdown.

use std::fmt::Write;

use super::{
    PredictorResult, Study, Way,
    policies::{BASE, BatchResult},
};
use crate::statistics::Mean;

/// Batch whose domains are told apart: the one nearest to this.
const USUAL_BATCH: u16 = 16;

fn plain(mean: &Mean) -> String {
    format!("{:.2} ± {:.2}", mean.mean, mean.standard_error)
}

fn percent(mean: &Mean) -> String {
    format!("{:+.1} ± {:.1} %", mean.mean * 100.0, mean.standard_error * 100.0)
}

fn row(out: &mut String, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<String> = cells.into_iter().collect();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

fn head(out: &mut String, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<String> = cells.into_iter().collect();
    let rule = vec!["---".to_owned(); cells.len()];
    row(out, cells);
    let _ = writeln!(out, "|{}|", rule.join("|"));
}

fn errors(out: &mut String, results: &[PredictorResult]) {
    let ways: Vec<Way> = Way::ALL
        .into_iter()
        .filter(|way| results.iter().any(|result| result.error(*way).is_some()))
        .collect();
    let heads = ways.iter().map(|way| way.head().to_owned());
    head(
        out,
        ["on", "calibrated", "evaluated"]
            .map(str::to_owned)
            .into_iter()
            .chain(heads),
    );
    for result in results {
        let error = |way: &Way| match result.error(*way) {
            Some(mean) if mean.standard_error > 0.0 => format!("{:.1} ± {:.1}", mean.mean, mean.standard_error),
            Some(mean) => format!("{:.1}", mean.mean),
            None => "-".to_owned(),
        };
        let first = [
            result.on.clone(),
            result.calibrated.to_string(),
            result.evaluated.to_string(),
        ];
        row(out, first.into_iter().chain(ways.iter().map(error)));
    }
}

impl Study {
    /// Tables for a page.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{} {}, {} requests ({} blended), {} workers, {} splits into halves (seeds {} to {}).\n",
            self.model,
            self.geometry,
            self.requests,
            self.blended,
            self.workers,
            self.repeats,
            self.seed,
            self.seed.wrapping_add(u64::from(self.repeats) - 1)
        );
        self.policies(&mut out);
        self.kinds(&mut out);
        let found = &self.predictors;
        if !found.learning.is_empty() {
            out.push_str("\nError of expected decode frequencies (mean square per cell of frequencies per token, x 10^4) by calibrated requests; evaluated on a quarter that was held out:\n\n");
            errors(&mut out, &found.learning);
        }
        if !found.unseen.is_empty() {
            out.push_str(
                "\nThe same on a domain that calibration did not see, neither pure nor in a blend (one split):\n\n",
            );
            errors(&mut out, &found.unseen);
        }
        out
    }

    fn policies(&self, out: &mut String) {
        out.push_str("Distinct experts per layer and step that a request's batch loads, change against LeastLoaded, and the busiest worker's requests over the mean:\n\n");
        let batches: Vec<u16> = self
            .policies
            .first()
            .map_or_else(Vec::new, |base| base.batches.iter().map(|b| b.batch).collect());
        head(
            out,
            std::iter::once("policy".to_owned()).chain(batches.iter().map(|batch| format!("batch {batch}"))),
        );
        for policy in &self.policies {
            let cell = |result: &BatchResult| {
                if policy.policy == BASE {
                    format!("{} (busiest {:.2})", plain(&result.distinct), result.busiest.mean)
                } else {
                    format!(
                        "{:.2}, {} (busiest {:.2})",
                        result.distinct.mean,
                        percent(&result.change),
                        result.busiest.mean
                    )
                }
            };
            row(
                out,
                std::iter::once(policy.policy.to_owned()).chain(policy.batches.iter().map(cell)),
            );
        }
    }

    fn kinds(&self, out: &mut String) {
        let usual = self.policies.first().and_then(|base| {
            base.batches
                .iter()
                .map(|b| b.batch)
                .min_by_key(|batch| batch.abs_diff(USUAL_BATCH))
        });
        let Some(usual) = usual else { return };
        let at = |policy: &'_ super::PolicyResult| policy.batches.iter().position(|result| result.batch == usual);
        let shown: Vec<(&str, &BatchResult)> = self
            .policies
            .iter()
            .filter_map(|policy| Some((policy.policy, policy.batches.get(at(policy)?)?)))
            .filter(|(name, _)| !matches!(*name, "RoundRobin" | "PowerOfTwoChoices" | "Random"))
            .collect();
        let Some((_, base)) = shown.first().filter(|(_, base)| base.kinds.len() > 1) else {
            return;
        };
        let _ = writeln!(out, "\nBy domain at batch {usual}:\n");
        head(
            out,
            std::iter::once("requests of".to_owned()).chain(shown.iter().map(|(name, _)| (*name).to_owned())),
        );
        for (at, kind) in base.kinds.iter().enumerate() {
            let cell = |(name, result): &(&str, &BatchResult)| {
                let found = result.kinds.get(at);
                match found {
                    Some(found) if *name == BASE => plain(&found.distinct),
                    Some(found) => percent(&found.change),
                    None => "-".to_owned(),
                }
            };
            row(out, std::iter::once(kind.kind.clone()).chain(shown.iter().map(cell)));
        }
    }
}
