//! Strict reader of `.npy` bytes, the form in which engines return routed experts: an array [rows, L, k] of expert ids.
//!
//! The bytes come from the network: every length is checked, nothing is allocated from a number in the header, and nothing panics.

use std::ops::{Bound, RangeBounds};

use crate::counts::{ActivationCounts, CountsError, MoeLayers};
use crate::geometry::Geometry;

/// Longest accepted header in bytes; real ones are 118.
pub const MAX_HEADER: usize = 4096;
/// Longest accepted text element in characters.
pub const MAX_TEXT: usize = 1 << 20;
/// Most dimensions of an accepted array.
pub const MAX_DIMENSIONS: usize = 8;

/// Element type of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// Unsigned byte.
    U8,
    /// Little-endian u16.
    U16,
    /// Little-endian u32.
    U32,
    /// Little-endian i16.
    I16,
    /// Little-endian i32.
    I32,
    /// Little-endian i64.
    I64,
    /// Text of this many UTF-32 characters, little-endian, padded with zeros.
    Text(usize),
}

impl Dtype {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 => 4,
            Self::I64 => 8,
            Self::Text(characters) => characters.saturating_mul(4),
        }
    }
}

/// Why bytes were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NpyError {
    /// Not an `.npy` file, or cut inside its header.
    #[error("npy: {0}")]
    Malformed(&'static str),
    /// An element type that is not read here.
    #[error("npy: element type '{0}' is not supported (expert ids are uint8, uint16 or int32, little-endian)")]
    Dtype(String),
    /// The data are shorter or longer than the shape says.
    #[error("npy: {got} bytes of data where the shape asks for {expected}")]
    Length {
        /// Bytes present.
        got: usize,
        /// Bytes expected.
        expected: usize,
    },
    /// The shape is not [rows, layers, top-k] of the model.
    #[error(
        "npy: shape {got:?} does not fit the model: [rows, {layers}, {top_k}] expected (an engine that also returns dense layers needs the list of MoE layers)"
    )]
    Shape {
        /// Shape found.
        got: Vec<usize>,
        /// Layers expected, dense ones included where the caller said so.
        layers: usize,
        /// Experts per token of the model.
        top_k: usize,
    },
    /// The rows asked for are not all there.
    #[error("npy: rows {start}..{end} asked for, {rows} present")]
    Rows {
        /// First row asked for.
        start: usize,
        /// One past the last row asked for.
        end: usize,
        /// Rows present.
        rows: usize,
    },
    /// The ids do not fit the model.
    #[error(transparent)]
    Counts(#[from] CountsError),
}

/// A parsed array that borrows its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array<'a> {
    /// Element type.
    pub dtype: Dtype,
    /// Dimensions, outermost first (C order).
    pub shape: Vec<usize>,
    /// Raw little-endian elements; exactly product(shape) x element size bytes.
    pub data: &'a [u8],
}

impl<'a> Array<'a> {
    /// Parses a whole `.npy` file.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, NpyError> {
        let rest = bytes
            .strip_prefix(b"\x93NUMPY")
            .ok_or(NpyError::Malformed("does not start with the .npy magic"))?;
        let short = NpyError::Malformed("cut inside the header");
        let (length, rest) = match rest {
            [1, 0, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
            [2 | 3, 0, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
            [1..=3, 0, ..] | [_] | [] => return Err(short),
            _ => return Err(NpyError::Malformed("unknown format version")),
        };
        if length > MAX_HEADER {
            return Err(NpyError::Malformed("header longer than 4096 bytes"));
        }
        let (header, data) = rest.split_at_checked(length).ok_or(short)?;
        let header = std::str::from_utf8(header).map_err(|_| NpyError::Malformed("header is not text"))?;
        let (dtype, shape) = parse_header(header)?;
        let expected = shape
            .iter()
            .try_fold(dtype.size(), |all, d| all.checked_mul(*d))
            .ok_or(NpyError::Malformed("shape is too large"))?;
        if data.len() != expected {
            return Err(NpyError::Length {
                got: data.len(),
                expected,
            });
        }
        Ok(Self { dtype, shape, data })
    }
}

impl Array<'_> {
    /// All elements as whole numbers; `None` for text and for values below 0 or above 2^32 - 1.
    pub fn whole_numbers(&self) -> Option<Vec<u32>> {
        let data = self.data;
        match self.dtype {
            Dtype::U8 => Some(data.iter().map(|b| u32::from(*b)).collect()),
            Dtype::U16 => Some(
                data.as_chunks()
                    .0
                    .iter()
                    .map(|b| u32::from(u16::from_le_bytes(*b)))
                    .collect(),
            ),
            Dtype::U32 => Some(data.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect()),
            Dtype::I16 => data
                .as_chunks()
                .0
                .iter()
                .map(|b| u32::try_from(i16::from_le_bytes(*b)).ok())
                .collect(),
            Dtype::I32 => data
                .as_chunks()
                .0
                .iter()
                .map(|b| u32::try_from(i32::from_le_bytes(*b)).ok())
                .collect(),
            Dtype::I64 => data
                .as_chunks()
                .0
                .iter()
                .map(|b| u32::try_from(i64::from_le_bytes(*b)).ok())
                .collect(),
            Dtype::Text(_) => None,
        }
    }

    /// The one text of an array without dimensions or with one element; `None` for anything else.
    pub fn text(&self) -> Option<String> {
        let one = self.shape.iter().all(|d| *d == 1);
        if !one || !matches!(self.dtype, Dtype::Text(_)) {
            return None;
        }
        let characters = self
            .data
            .as_chunks()
            .0
            .iter()
            .map(|b| u32::from_le_bytes(*b))
            .take_while(|c| *c != 0);
        characters.map(char::from_u32).collect()
    }
}

/// Counts the rows `rows` (for instance `..prompt_tokens`) of an `.npy` array [rows, L, k] of expert ids.
///
/// Base64, where an engine uses it, is decoded by the caller.
pub fn counts_from_npy(
    bytes: &[u8],
    geometry: &Geometry,
    rows: impl RangeBounds<usize>,
) -> Result<ActivationCounts, NpyError> {
    counts_of_layers_from_npy(bytes, geometry, &MoeLayers::all(geometry), rows)
}

/// The same for an engine whose arrays [rows, layers.total(), k] have dense layers too.
pub fn counts_of_layers_from_npy(
    bytes: &[u8],
    geometry: &Geometry,
    layers: &MoeLayers,
    rows: impl RangeBounds<usize>,
) -> Result<ActivationCounts, NpyError> {
    let array = Array::parse(bytes)?;
    let &[present, found, top_k] = array.shape.as_slice() else {
        return Err(wrong_shape(array.shape, geometry, layers));
    };
    if found != layers.total() || top_k != geometry.top_k {
        return Err(wrong_shape(array.shape, geometry, layers));
    }
    let start = match rows.start_bound() {
        Bound::Included(s) => *s,
        Bound::Excluded(s) => s.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match rows.end_bound() {
        Bound::Included(e) => e.saturating_add(1),
        Bound::Excluded(e) => *e,
        Bound::Unbounded => present,
    };
    if start > end || end > present {
        return Err(NpyError::Rows {
            start,
            end,
            rows: present,
        });
    }
    if !matches!(array.dtype, Dtype::U8 | Dtype::U16 | Dtype::I32) {
        return Err(NpyError::Dtype(format!("{:?}", array.dtype)));
    }
    let row_bytes = found * top_k * array.dtype.size();
    let data = array.data.get(start * row_bytes..end * row_bytes).unwrap_or(&[]);
    count(data, array.dtype, geometry, layers, end - start)
}

fn count(
    data: &[u8],
    dtype: Dtype,
    geometry: &Geometry,
    layers: &MoeLayers,
    rows: usize,
) -> Result<ActivationCounts, NpyError> {
    let mut counts = ActivationCounts::zeros(geometry);
    if dtype == Dtype::U8 {
        if layers.total() == geometry.layers {
            counts.add_rows(data, rows)?;
        } else {
            counts.add_rows_of(layers, data, rows)?;
        }
        return Ok(counts);
    }
    // Wider ids are converted row by row: network bytes have no alignment, and a copy of one row stays in cache.
    let ids_per_row = layers.total() * geometry.top_k;
    let mut ids: Vec<i32> = Vec::with_capacity(ids_per_row);
    for (token, row) in data.chunks_exact(ids_per_row * dtype.size()).enumerate() {
        ids.clear();
        if dtype == Dtype::U16 {
            ids.extend(row.as_chunks::<2>().0.iter().map(|b| i32::from(u16::from_le_bytes(*b))));
        } else {
            ids.extend(row.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b)));
        }
        counts.add_rows_of(layers, &ids, 1).map_err(|error| match error {
            CountsError::ExpertOutOfRange { layer, experts, .. } => {
                CountsError::ExpertOutOfRange { token, layer, experts }
            }
            other => other,
        })?;
    }
    Ok(counts)
}

fn wrong_shape(got: Vec<usize>, geometry: &Geometry, layers: &MoeLayers) -> NpyError {
    NpyError::Shape {
        got,
        layers: layers.total(),
        top_k: geometry.top_k,
    }
}

/// Reads the header's Python dictionary: exactly the keys descr, fortran_order and shape, in any order.
fn parse_header(header: &str) -> Result<(Dtype, Vec<usize>), NpyError> {
    let bad = || NpyError::Malformed("header is not a dictionary of descr, fortran_order and shape");
    let mut rest = header
        .trim()
        .strip_prefix('{')
        .and_then(|h| h.strip_suffix('}'))
        .ok_or_else(bad)?
        .trim();
    let (mut dtype, mut shape, mut order) = (None, None, None);
    while !rest.is_empty() {
        let (key, after) = quoted(rest).ok_or_else(bad)?;
        let value = after.trim_start().strip_prefix(':').ok_or_else(bad)?.trim_start();
        let tail = match key {
            "descr" if dtype.is_none() => {
                let (name, tail) = quoted(value).ok_or_else(bad)?;
                dtype = Some(parse_dtype(name)?);
                tail
            }
            "fortran_order" if order.is_none() => {
                order = Some(());
                value
                    .strip_prefix("False")
                    .ok_or(NpyError::Malformed("array is not in C order"))?
            }
            "shape" if shape.is_none() => {
                let (inner, tail) = value
                    .strip_prefix('(')
                    .and_then(|v| v.split_once(')'))
                    .ok_or_else(bad)?;
                shape = Some(parse_shape(inner).ok_or_else(bad)?);
                tail
            }
            _ => return Err(bad()),
        };
        let tail = tail.trim_start();
        rest = match tail.strip_prefix(',') {
            Some(more) => more.trim(),
            None if tail.is_empty() => tail,
            None => return Err(bad()),
        };
    }
    match (dtype, shape, order) {
        (Some(dtype), Some(shape), Some(())) => Ok((dtype, shape)),
        _ => Err(bad()),
    }
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text.get(1..)?.split_once(quote)
}

fn parse_dtype(name: &str) -> Result<Dtype, NpyError> {
    match name {
        "|u1" | "<u1" | "u1" => Ok(Dtype::U8),
        "<u2" => Ok(Dtype::U16),
        "<u4" => Ok(Dtype::U32),
        "<i2" => Ok(Dtype::I16),
        "<i4" => Ok(Dtype::I32),
        "<i8" => Ok(Dtype::I64),
        other => match other.strip_prefix("<U").map(str::parse) {
            Some(Ok(characters)) if characters <= MAX_TEXT => Ok(Dtype::Text(characters)),
            _ => Err(NpyError::Dtype(other.chars().take(32).collect())),
        },
    }
}

fn parse_shape(inner: &str) -> Option<Vec<usize>> {
    let mut dimensions = Vec::new();
    let mut rest = inner.trim();
    while !rest.is_empty() {
        let (number, tail) = rest.split_once(',').unwrap_or((rest, ""));
        let number = number.trim();
        if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) || dimensions.len() == MAX_DIMENSIONS {
            return None;
        }
        dimensions.push(number.parse().ok()?);
        rest = tail.trim_start();
    }
    Some(dimensions)
}
