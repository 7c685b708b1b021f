//! Reader of calibration data as the ELDR artifact writes them: an `.npz` (zip of `.npy`) with counts of N requests.
//!
//! Read are `prefill_counts` and, if present, `decode_counts` (whole numbers [N, L, E]), `prompt_tokens` and `decode_tokens` (length N, or one
//! number for all), and `metadata`, a JSON text with `model` and `top_k`. Counts must add up: per layer to tokens x top-k.

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::counts::{ActivationCounts, CountsError};
use crate::geometry::{Geometry, GeometryError};
use crate::npy::{Array, NpyError};
use crate::sample::Sample;
use crate::table::Fingerprint;

/// Largest accepted array of an archive, uncompressed.
pub const MAX_ARRAY_BYTES: u64 = 1 << 30;

/// Why an archive was refused.
#[derive(Debug, thiserror::Error)]
pub enum NpzError {
    /// Not a zip archive, or damaged.
    #[error("npz: {0}")]
    Zip(#[from] ZipError),
    /// A member that cannot be read.
    #[error("npz: {name}: {problem}")]
    Member {
        /// The member.
        name: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The geometry of the counts is out of bounds.
    #[error("npz: {0}")]
    Geometry(#[from] GeometryError),
    /// Counts of one request that do not add up.
    #[error("npz: request {request}: {error}")]
    Counts {
        /// Row of the request.
        request: usize,
        /// What is wrong with its counts.
        error: CountsError,
    },
}

/// Reads all requests of an archive. Model name and top-k come from its metadata unless given.
pub fn read_calibration(bytes: &[u8], model: Option<&str>, top_k: Option<usize>) -> Result<Vec<Sample>, NpzError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes))?;
    let metadata = read_metadata(&mut archive)?;
    let named = metadata
        .as_ref()
        .and_then(|m| m.get("model"))
        .and_then(serde_json::Value::as_str);
    let model = model.or(named).unwrap_or_default().to_owned();
    let counted = metadata
        .as_ref()
        .and_then(|m| m.get("top_k"))
        .and_then(serde_json::Value::as_u64);
    let Some(top_k) = top_k.or(counted.and_then(|k| usize::try_from(k).ok())) else {
        return Err(problem("metadata", "has no top_k; state the model's experts per token"));
    };
    let Some((shape, prefill)) = numbers(&mut archive, "prefill_counts")? else {
        return Err(problem("prefill_counts", "is missing"));
    };
    let &[requests, layers, experts] = shape.as_slice() else {
        return Err(problem(
            "prefill_counts",
            "does not have the shape [requests, layers, experts]",
        ));
    };
    let geometry = Geometry::new(layers, experts, top_k)?;
    let decode = numbers(&mut archive, "decode_counts")?;
    if decode.as_ref().is_some_and(|(other, _)| *other != shape) {
        return Err(problem("decode_counts", "differs from prefill_counts in shape"));
    }
    let prompt_tokens =
        tokens(&mut archive, "prompt_tokens", requests)?.ok_or_else(|| problem("prompt_tokens", "is missing"))?;
    let decode_tokens = match decode {
        Some(_) => tokens(&mut archive, "decode_tokens", requests)?
            .ok_or_else(|| problem("decode_tokens", "is missing beside decode_counts"))?,
        None => Vec::new(),
    };
    let fingerprint = Fingerprint::new(model, geometry);
    let row = |cells: &[u32], request: usize| cells[request * geometry.cells()..][..geometry.cells()].to_vec();
    (0..requests)
        .map(|request| {
            let checked = |cells: Vec<u32>, tokens: u32| {
                let counts = ActivationCounts::from_cells(&geometry, cells, u64::from(tokens));
                counts
                    .and_then(|c| c.check_conservation().map(|()| c))
                    .map_err(|error| NpzError::Counts { request, error })
            };
            let mut sample = Sample::new(fingerprint.clone());
            sample.prompt_tokens = u64::from(prompt_tokens[request]);
            sample.prefill_counts = Some(checked(row(&prefill, request), prompt_tokens[request])?);
            if let Some((_, cells)) = &decode {
                sample.generated_tokens = u64::from(decode_tokens[request]);
                sample.decode_counts = Some(checked(row(cells, request), decode_tokens[request])?);
            }
            Ok(sample)
        })
        .collect()
}

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// Shape and values of an array of whole numbers.
type Numbers = (Vec<usize>, Vec<u32>);

fn problem(name: &'static str, problem: impl Into<String>) -> NpzError {
    NpzError::Member {
        name,
        problem: problem.into(),
    }
}

/// Bytes of one member; `None` when there is no such member. Memory grows with what inflates, up to the limit.
fn member(archive: &mut Archive<'_>, name: &'static str) -> Result<Option<Vec<u8>>, NpzError> {
    let file = match archive.by_name(&format!("{name}.npy")) {
        Ok(file) => file,
        Err(ZipError::FileNotFound) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    let read = file
        .take(MAX_ARRAY_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| problem(name, e.to_string()))?;
    if read as u64 > MAX_ARRAY_BYTES {
        return Err(problem(name, format!("is larger than {MAX_ARRAY_BYTES} bytes")));
    }
    Ok(Some(bytes))
}

fn numbers(archive: &mut Archive<'_>, name: &'static str) -> Result<Option<Numbers>, NpzError> {
    let Some(bytes) = member(archive, name)? else {
        return Ok(None);
    };
    let array = Array::parse(&bytes).map_err(|e: NpyError| problem(name, e.to_string()))?;
    let values = array
        .whole_numbers()
        .ok_or_else(|| problem(name, "has values that are no counts"))?;
    Ok(Some((array.shape, values)))
}

/// One token count per request; a single number holds for all.
fn tokens(archive: &mut Archive<'_>, name: &'static str, requests: usize) -> Result<Option<Vec<u32>>, NpzError> {
    Ok(match numbers(archive, name)? {
        None => None,
        Some((shape, values)) if shape == [requests] => Some(values),
        Some((_, values)) if values.len() == 1 => Some(vec![values[0]; requests]),
        Some(_) => return Err(problem(name, "does not have one value for each request")),
    })
}

fn read_metadata(archive: &mut Archive<'_>) -> Result<Option<serde_json::Value>, NpzError> {
    let Some(bytes) = member(archive, "metadata")? else {
        return Ok(None);
    };
    let array = Array::parse(&bytes).map_err(|e| problem("metadata", e.to_string()))?;
    let text = array.text().ok_or_else(|| problem("metadata", "is not one text"))?;
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|e| problem("metadata", format!("is not JSON: {e}")))
}

#[cfg(test)]
#[path = "npz_tests.rs"]
mod tests;
