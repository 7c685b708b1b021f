//! Bytes of predictors, in a table's payload.
//!
//! All little-endian: mean f32 [L x E]; maps' usual error f32; three curves (text, prefill, both), each a count u8 (0: absent) and that
//! many knots f32 and weights f32 \[4\]; then for the text map, if its rank is not 0, `known` u8 \[buckets\], and for each map with a rank
//! (text, prefill) scale f32 \[rank\], offset f32 [L x E], input f16 [features, rank], output f16 [rank, L x E].

use super::TableError;
use crate::geometry::Geometry;
use crate::predictor::{
    Curve, LowRankMap, MAX_KNOTS, MAX_RANK, Mixing, NGRAM_BUCKETS, Predictors, PrefillMap, TextMap,
};

/// Ranks of the maps: 0 where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Ranks {
    text: usize,
    prefill: usize,
    /// Buckets of n-grams: a text map of another number is of another build.
    ngram_buckets: u32,
}

impl Ranks {
    pub(super) fn of(predictors: &Predictors) -> Self {
        Self {
            text: predictors.text().map_or(0, |t| t.map().rank()),
            prefill: predictors.prefill().map_or(0, |p| p.map().rank()),
            ngram_buckets: NGRAM_BUCKETS,
        }
    }
}

pub(super) fn write(predictors: &Predictors, out: &mut Vec<u8>) {
    put(out, predictors.mean());
    let mixing = predictors.mixing();
    put(out, &[mixing.map_error]);
    for curve in [&mixing.text, &mixing.prefill, &mixing.both] {
        let Some(curve) = curve else {
            out.push(0);
            continue;
        };
        out.push(curve.knots().len() as u8);
        put(out, curve.knots());
        put(out, curve.knot_weights().as_flattened());
    }
    if let Some(text) = predictors.text() {
        out.extend_from_slice(text.known());
        write_map(text.map(), out);
    }
    if let Some(prefill) = predictors.prefill() {
        write_map(prefill.map(), out);
    }
}

fn put(out: &mut Vec<u8>, values: &[f32]) {
    out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
}

fn write_map(map: &LowRankMap, out: &mut Vec<u8>) {
    put(out, map.scale());
    put(out, map.offset());
    out.extend(map.input_halves().flat_map(u16::to_le_bytes));
    out.extend(map.output_halves().flat_map(u16::to_le_bytes));
}

/// Reads predictors from the start of `bytes` and returns what is left.
pub(super) fn read<'a>(
    bytes: &'a [u8],
    ranks: Ranks,
    geometry: &Geometry,
) -> Result<(Predictors, &'a [u8]), TableError> {
    if ranks.ngram_buckets != NGRAM_BUCKETS {
        return Err(TableError::Malformed(format!(
            "predictors for {} n-gram buckets; this build has {NGRAM_BUCKETS}: calibrate again",
            ranks.ngram_buckets
        )));
    }
    if ranks.text > MAX_RANK || ranks.prefill > MAX_RANK {
        return Err(TableError::Malformed(format!("predictors of a rank above {MAX_RANK}")));
    }
    let mut rest = Rest(bytes);
    let read = |rest: &mut Rest<'a>| -> Option<Predictors> {
        let cells = geometry.cells();
        let mut predictors = Predictors::mean_only(geometry, rest.floats(cells)?)?;
        let map_error = *rest.floats(1)?.first()?;
        if !(map_error.is_finite() && map_error >= 0.0) {
            return None;
        }
        predictors.mixing = Mixing {
            map_error,
            text: rest.curve()?,
            prefill: rest.curve()?,
            both: rest.curve()?,
        };
        if ranks.text > 0 {
            let known = rest.take(NGRAM_BUCKETS as usize)?.to_vec();
            predictors.text = Some(TextMap::new(
                rest.map(NGRAM_BUCKETS as usize, cells, ranks.text)?,
                known,
            )?);
        }
        if ranks.prefill > 0 {
            predictors.prefill = Some(PrefillMap::new(rest.map(cells, cells, ranks.prefill)?)?);
        }
        Some(predictors)
    };
    match read(&mut rest) {
        Some(predictors) => Ok((predictors, rest.0)),
        None => Err(TableError::Malformed("predictors are cut or not sound".into())),
    }
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn floats(&mut self, n: usize) -> Option<Vec<f32>> {
        let bytes = self.take(n.checked_mul(4)?)?;
        Some(
            bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|b| f32::from_le_bytes(*b))
                .collect(),
        )
    }

    fn halves(&mut self, n: usize) -> Option<Vec<u16>> {
        let bytes = self.take(n.checked_mul(2)?)?;
        Some(
            bytes
                .as_chunks::<2>()
                .0
                .iter()
                .map(|b| u16::from_le_bytes(*b))
                .collect(),
        )
    }

    fn map(&mut self, features: usize, cells: usize, rank: usize) -> Option<LowRankMap> {
        let (scale, offset) = (self.floats(rank)?, self.floats(cells)?);
        let input = self.halves(features.checked_mul(rank)?)?;
        let output = self.halves(rank.checked_mul(cells)?)?;
        LowRankMap::from_halves(&input, &output, scale, offset)
    }

    /// `None` if malformed, `Some(None)` if absent.
    #[allow(clippy::option_option)]
    fn curve(&mut self) -> Option<Option<Curve>> {
        let number = usize::from(*self.take(1)?.first()?);
        if number == 0 {
            return Some(None);
        }
        if number > MAX_KNOTS {
            return None;
        }
        let knots = self.floats(number)?;
        let weights = self.floats(number * 4)?;
        Some(Some(Curve::new(knots, weights.as_chunks::<4>().0.to_vec())?))
    }
}
