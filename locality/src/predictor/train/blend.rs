//! Learning how to mix: from what the maps would have said of samples, and of regions of traffic, that they did not see.

use rayon::prelude::*;

use super::features::Known;
use super::samples::{GROUPINGS, Ready};
use super::{Fitted, PredictorReport};
use crate::predictor::mixing::{Curve, Mixing};
use crate::predictor::predictors::{Inputs, Predictors};

/// What a sample in an unseen region counts against one in a seen region: such requests are rare, and cost most.
const UNSEEN_REGION: f64 = 0.2;
/// Shares of the samples at which one knot's stretch ends and the next begins: narrow where trust runs out.
const STRETCHES: [f64; 8] = [0.0, 0.25, 0.5, 0.7, 0.82, 0.91, 0.97, 1.0];
/// Samples that a knot rests on at least.
const KNOT_SAMPLES: f64 = 24.0;
const PREDICTORS: usize = 4;

/// Products [4, 4] of the residuals of text, prefill, own and mean predictions, and where on a curve.
#[derive(Clone, Copy)]
struct Case {
    x: f32,
    weight: f64,
    products: [[f64; PREDICTORS]; PREDICTORS],
    unseen_region: bool,
}

/// Which predictors a curve mixes.
const TEXT_ONLY: [bool; PREDICTORS] = [true, false, false, true];
const PREFILL_ONLY: [bool; PREDICTORS] = [false, true, true, true];
const BOTH: [bool; PREDICTORS] = [true, true, true, true];

pub(super) fn blend(
    ready: &Ready<'_>,
    predictors: &Predictors,
    text: Option<&Fitted>,
    prefill: Option<&Fitted>,
    known: &Known,
) -> (Mixing, PredictorReport) {
    let n = ready.samples.len();
    let maps = Maps {
        ready,
        text: text.map(|map| (map, columns(map, n))),
        prefill: prefill.map(|map| (map, columns(map, n))),
    };
    // First the maps' usual error, which disagreement is measured against.
    let alone: Vec<Measured> = (0..n)
        .into_par_iter()
        .filter_map(|i| Some(maps.case(i, None)?.measure(ready, predictors, known)))
        .collect();
    let error = |of: usize| mean_error(&alone, of);
    let cells = ready.mean.len() as f64;
    let mut mixing = Mixing {
        map_error: error(1).or(error(0)).map_or(0.0, |e| e as f32),
        ..Mixing::default()
    };
    let scaled = Predictors {
        geometry: ready.geometry,
        mean: ready.mean.clone(),
        text: None,
        prefill: None,
        mixing: mixing.clone(),
    };
    let measured: Vec<Measured> = (0..(1 + GROUPINGS) * n)
        .into_par_iter()
        .filter_map(|at| {
            Some(
                maps.case(at % n, (at / n).checked_sub(1))?
                    .measure(ready, &scaled, known),
            )
        })
        .collect();
    let cases = |x: &dyn Fn(&Measured) -> Option<f32>| -> Vec<Case> {
        measured
            .iter()
            .filter_map(|m| x(m).map(|x| Case { x, ..m.case }))
            .collect()
    };
    let (by_text, by_prefill, by_both) = (cases(&|m| m.known), cases(&|m| m.prefill), cases(&|m| m.both));
    mixing.text = curve(&by_text, TEXT_ONLY);
    mixing.prefill = curve(&by_prefill, PREFILL_ONLY);
    mixing.both = curve(&by_both, BOTH);
    let regions: Vec<Measured> = measured.iter().filter(|m| m.case.unseen_region).copied().collect();
    let mixed = |unseen: bool| match (&mixing.both, &mixing.prefill) {
        (Some(curve), _) => mixed_error(curve, &by_both, unseen, cells),
        (None, Some(curve)) => mixed_error(curve, &by_prefill, unseen, cells),
        (None, None) => None,
    };
    let report = PredictorReport {
        mean_error: error(3).unwrap_or(0.0),
        own_error: error(2),
        text_error: error(0),
        prefill_error: error(1),
        text_error_unseen_region: mean_error(&regions, 0),
        prefill_error_unseen_region: mean_error(&regions, 1),
        mixed_error: mixed(false),
        mixed_error_unseen_region: mixed(true),
        ..PredictorReport::default()
    };
    (mixing, report)
}

/// Error of a mixture on seen or unseen regions, per cell.
fn mixed_error(curve: &Curve, among: &[Case], unseen: bool, cells: f64) -> Option<f64> {
    let (mut sum, mut total) = (0.0, 0.0);
    for case in among.iter().filter(|c| c.unseen_region == unseen) {
        let w = curve.at(case.x).to_array().map(f64::from);
        sum += case.weight * quadratic(&case.products, &w);
        total += case.weight;
    }
    (total > 0.0).then(|| sum / total / cells)
}

/// Column of each sample in a map's values.
fn columns(map: &Fitted, n: usize) -> Vec<Option<usize>> {
    let mut columns = vec![None; n];
    for (column, i) in map.of.iter().enumerate() {
        columns[*i] = Some(column);
    }
    columns
}

struct Maps<'a> {
    ready: &'a Ready<'a>,
    text: Option<(&'a Fitted, Vec<Option<usize>>)>,
    prefill: Option<(&'a Fitted, Vec<Option<usize>>)>,
}

impl Maps<'_> {
    /// Predictions of a sample, left out alone or with its region of a grouping. `None` if it is in no region.
    fn case(&self, i: usize, grouping: Option<usize>) -> Option<Rows> {
        let ready = self.ready;
        let region = match grouping {
            Some(grouping) => Some((grouping, ready.groups[grouping][i]?)),
            None => None,
        };
        let cells = ready.mean.len();
        let expand = |map: &Option<(&Fitted, Vec<Option<usize>>)>| {
            let (map, columns) = map.as_ref()?;
            let latent = grouping.map_or(&map.unseen, |g| &map.unseen_group[g]);
            let mut out = vec![0.0; cells];
            map.expand(latent, columns[i]?, &ready.geometry, &mut out);
            Some(out)
        };
        let own = ready.samples[i].prefill_counts.as_ref().and_then(|counts| {
            let mut own = vec![0.0; cells];
            crate::predictor::own_frequencies(counts, &mut own).then_some((own, counts.tokens()))
        });
        Some(Rows {
            sample: i,
            region,
            text: expand(&self.text),
            prefill: expand(&self.prefill),
            own,
        })
    }
}

/// Predictions of one sample.
struct Rows {
    sample: usize,
    region: Option<(usize, usize)>,
    text: Option<Vec<f32>>,
    prefill: Option<Vec<f32>>,
    own: Option<(Vec<f32>, u64)>,
}

#[derive(Clone, Copy)]
struct Measured {
    case: Case,
    present: [bool; PREDICTORS],
    cells: f64,
    /// Known share of the text.
    known: Option<f32>,
    /// ln disagreement of the prefill map and own frequencies.
    prefill: Option<f32>,
    /// ln disagreement of both maps and own frequencies.
    both: Option<f32>,
}

impl Rows {
    fn measure(&self, ready: &Ready<'_>, predictors: &Predictors, known: &Known) -> Measured {
        let cells = ready.mean.len();
        let centred = &ready.rows[self.sample * cells..(self.sample + 1) * cells];
        let truth: Vec<f32> = centred.iter().zip(&ready.mean).map(|(v, m)| v + m).collect();
        let own = self.own.as_ref().map(|(own, _)| own);
        let rows = [self.text.as_ref(), self.prefill.as_ref(), own, Some(&ready.mean)];
        let residuals = rows.map(|row| row.map(|row| row.iter().zip(&truth).map(|(v, t)| v - t).collect::<Vec<f32>>()));
        let mut products = [[0.0; PREDICTORS]; PREDICTORS];
        for (a, left) in residuals.iter().enumerate() {
            for (b, right) in residuals.iter().enumerate().take(a + 1) {
                if let (Some(left), Some(right)) = (left, right) {
                    products[a][b] = f64::from(crate::score::dot(left, right));
                    products[b][a] = products[a][b];
                }
            }
        }
        let disagreement = |text: &Vec<f32>, prefill: &Vec<f32>, shares| {
            let (own, tokens) = self.own.as_ref()?;
            let inputs = Inputs { text, prefill, own };
            Some(predictors.disagreement(&inputs, shares, *tokens).ln())
        };
        Measured {
            case: Case {
                x: 0.0,
                weight: ready.weights[self.sample] * if self.region.is_some() { UNSEEN_REGION } else { 1.0 },
                products,
                unseen_region: self.region.is_some(),
            },
            present: rows.map(|row| row.is_some()),
            cells: cells as f64,
            known: self
                .text
                .as_ref()
                .map(|_| known.share(&ready.samples[self.sample].ngrams, self.region)),
            prefill: self.prefill.as_ref().and_then(|p| disagreement(p, p, [0.0, 1.0])),
            both: self
                .text
                .as_ref()
                .zip(self.prefill.as_ref())
                .and_then(|(t, p)| disagreement(t, p, [0.5, 0.5])),
        }
    }
}

fn mean_error(measured: &[Measured], of: usize) -> Option<f64> {
    let (mut sum, mut total) = (0.0, 0.0);
    for m in measured.iter().filter(|m| m.present[of]) {
        sum += m.case.weight * m.case.products[of][of] / m.cells;
        total += m.case.weight;
    }
    (total > 0.0).then(|| sum / total)
}

/// A knot for each stretch of cases, with the mixture that has the least squared error on it.
fn curve(cases: &[Case], mixed: [bool; PREDICTORS]) -> Option<Curve> {
    let mut sorted: Vec<&Case> = cases.iter().collect();
    sorted.sort_by(|a, b| a.x.total_cmp(&b.x));
    let total: f64 = sorted.iter().map(|c| c.weight).sum();
    if total < KNOT_SAMPLES {
        return None;
    }
    // Confidence falls along x for disagreement, and against it for the known share of a text.
    let falling = !mixed[2];
    let edges: Vec<f64> = if falling {
        STRETCHES.iter().rev().map(|s| 1.0 - s).collect()
    } else {
        STRETCHES.to_vec()
    };
    let (mut knots, mut weights): (Vec<f32>, Vec<[f32; 4]>) = (Vec::new(), Vec::new());
    let mut stretch: Vec<&Case> = Vec::new();
    let (mut below, mut next, mut gathered) = (0.0, 1, 0.0);
    for (at, case) in sorted.iter().enumerate() {
        stretch.push(case);
        below += case.weight;
        gathered += case.weight;
        let ends = edges.get(next).is_none_or(|edge| below >= edge * total - 1e-9);
        let last = at + 1 == sorted.len();
        if ends {
            while edges.get(next).is_some_and(|edge| below >= edge * total - 1e-9) {
                next += 1;
            }
        }
        let enough = gathered >= KNOT_SAMPLES && total - below >= KNOT_SAMPLES;
        if last || (ends && enough) {
            let x = middle(&stretch, gathered);
            if knots.last().is_none_or(|k| x > *k + 1e-6) {
                knots.push(x);
                weights.push(best_mixture(&stretch, mixed));
            }
            stretch.clear();
            gathered = 0.0;
        }
    }
    Curve::new(knots, weights)
}

/// Weighted median of x.
fn middle(cases: &[&Case], total: f64) -> f32 {
    let mut below = 0.0;
    for case in cases {
        below += case.weight;
        if below * 2.0 >= total {
            return case.x;
        }
    }
    cases.last().map_or(0.0, |c| c.x)
}

/// Non-negative weights that add up to 1 and have the least squared error: the best over all sets of predictors, each solved exactly.
fn best_mixture(cases: &[&Case], mixed: [bool; PREDICTORS]) -> [f32; 4] {
    let mut products = [[0.0; PREDICTORS]; PREDICTORS];
    for case in cases {
        for (sum, row) in products.iter_mut().zip(&case.products) {
            sum.iter_mut().zip(row).for_each(|(s, v)| *s += case.weight * v);
        }
    }
    let trace: f64 = (0..PREDICTORS).map(|i| products[i][i]).sum();
    (0..PREDICTORS).for_each(|i| products[i][i] += 1e-6 * trace + f64::MIN_POSITIVE);
    let mut best = ([0.0; PREDICTORS], f64::INFINITY);
    for set in 1u8..1 << PREDICTORS {
        let members: Vec<usize> = (0..PREDICTORS).filter(|i| set >> i & 1 == 1).collect();
        if members.iter().any(|i| !mixed[*i]) {
            continue;
        }
        let Some(solution) = solve_ones(&products, &members) else {
            continue;
        };
        let sum: f64 = solution.iter().sum();
        let mut w = [0.0; PREDICTORS];
        members.iter().zip(&solution).for_each(|(i, v)| w[*i] = v / sum);
        if w.iter().any(|v| !v.is_finite() || *v < 0.0) {
            continue;
        }
        let error = quadratic(&products, &w);
        if error < best.1 {
            best = (w, error);
        }
    }
    best.0.map(|v| v as f32)
}

/// Solves the members' part of `products` for a right-hand side of ones.
fn solve_ones(products: &[[f64; PREDICTORS]; PREDICTORS], members: &[usize]) -> Option<Vec<f64>> {
    let n = members.len();
    let matrix: Vec<f64> = members
        .iter()
        .flat_map(|i| members.iter().map(move |j| products[*i][*j]))
        .collect();
    let factor = super::factor::inverse_factor(matrix, n)?;
    let inverse = super::products::products_f64(&factor, &factor, n);
    Some(inverse.chunks_exact(n).map(|row| row.iter().sum()).collect())
}

fn quadratic(products: &[[f64; PREDICTORS]; PREDICTORS], w: &[f64; PREDICTORS]) -> f64 {
    products
        .iter()
        .zip(w)
        .map(|(row, a)| a * row.iter().zip(w).map(|(v, b)| v * b).sum::<f64>())
        .sum()
}
