//! Recordings of gates: an `.npz` with the experts that a model chose for each request.
//!
//! | array | type, shape | meaning |
//! |---|---|---|
//! | `prefill` | whole numbers [N, L, E] | times each expert was chosen over the prompt's tokens |
//! | `decode` | u8, u16 or i32 [N, T, L, k] | experts chosen at each generated token |
//! | `prompt_tokens` | whole numbers \[N\] | prompt length |
//! | `domain` | str \[N\], may be absent | label; `a+b` is a blend of two |
//! | `prompt` | str \[N\], may be absent | text of the prompt |
//! | `prompt_ids` | whole numbers [N, M], may be absent | tokens of the prompt, then zeros; text where a tokenizer is given |
//!
//! Text is hashed at once and never kept.

use std::{io::Cursor, path::Path};

use coterie_locality::{
    ActivationCounts, Fingerprint, Geometry,
    npy::{Array, Dtype},
    npz::MAX_ARRAY_BYTES,
    sample::Sample,
};
use zip::{ZipArchive, result::ZipError};

use super::{prompt_text, read_bytes};
use crate::error::Error;

/// A recording.
#[derive(Clone, Debug)]
pub struct Recording {
    /// One sample for each request.
    pub samples: Vec<Sample>,
    /// A label for each request.
    pub domains: Option<Vec<String>>,
}

/// What is wrong with a recording.
#[derive(Debug)]
pub struct Refusal(String);

impl Refusal {
    pub(super) fn new(what: String) -> Self {
        Self(what)
    }

    pub(super) fn of_file(&self, path: &Path) -> Error {
        Error::input("SamplesUnreadable", format!("read {}: {}", path.display(), self.0))
    }
}

pub(super) type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// Whether an archive is a recording of gates rather than ELDR's calibration data.
pub fn is_recording(bytes: &[u8]) -> bool {
    ZipArchive::new(Cursor::new(bytes)).is_ok_and(|archive| {
        let has = |name| archive.index_for_name(name).is_some();
        has("prefill.npy") && has("decode.npy")
    })
}

impl Recording {
    /// Reads all requests. N-grams of the text are there where the recording has `prompt`, or has `prompt_ids` and a tokenizer is given.
    ///
    /// # Errors
    /// When an array is missing, damaged or does not fit the others, or the tokenizer cannot be read.
    pub fn read(bytes: &[u8], model: &str, tokenizer: Option<&Path>) -> Result<Self, Refusal> {
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| Refusal(format!("npz: {error}")))?;
        let prefill = required(&mut archive, "prefill")?;
        let decode = required(&mut archive, "decode")?;
        let tokens = required(&mut archive, "prompt_tokens")?;
        let (prefill, decode, tokens) = (
            parse("prefill", &prefill)?,
            parse("decode", &decode)?,
            parse("prompt_tokens", &tokens)?,
        );
        let (&[requests, layers, experts], &[others, generated, decode_layers, top_k]) =
            (prefill.shape.as_slice(), decode.shape.as_slice())
        else {
            return Err(wrong(
                "prefill or decode",
                "has another shape than [N, L, E] and [N, T, L, k]",
            ));
        };
        if (others, decode_layers) != (requests, layers) || tokens.shape != [requests] {
            return Err(wrong(
                "decode or prompt_tokens",
                "has other requests or layers than prefill",
            ));
        }
        let geometry = Geometry::new(layers, experts, top_k).map_err(|error| Refusal(error.to_string()))?;
        let fingerprint = Fingerprint::new(model, geometry);
        let not_counts = |name| wrong(name, "has values that are no counts");
        let prompt_tokens = tokens.whole_numbers().ok_or_else(|| not_counts("prompt_tokens"))?;
        let cells = prefill.whole_numbers().ok_or_else(|| not_counts("prefill"))?;
        let mut samples = Vec::with_capacity(requests.min(1 << 20));
        for (request, (cells, tokens)) in cells.chunks_exact(geometry.cells()).zip(&prompt_tokens).enumerate() {
            let refused = |error: &dyn std::fmt::Display| Refusal(format!("npz: request {request}: {error}"));
            let mut sample = Sample::new(fingerprint.clone());
            let counts = ActivationCounts::from_cells(&geometry, cells.to_vec(), u64::from(*tokens));
            sample.prefill_counts = Some(counts.map_err(|error| refused(&error))?);
            sample.prompt_tokens = u64::from(*tokens);
            sample.decode_counts =
                Some(decode_counts(&decode, &geometry, request, generated).map_err(|error| refused(&error))?);
            sample.generated_tokens = generated as u64;
            samples.push(sample);
        }
        let ngrams = prompt_text::ngrams(&mut archive, &prompt_tokens, tokenizer)?;
        for (sample, ngrams) in samples.iter_mut().zip(ngrams.into_iter().flatten()) {
            sample.ngrams = ngrams;
        }
        let domains = texts(&mut archive, "domain", requests)?;
        Ok(Self { samples, domains })
    }
}

/// Counts of one request's row of `decode`.
fn decode_counts(
    decode: &Array<'_>,
    geometry: &Geometry,
    request: usize,
    generated: usize,
) -> Result<ActivationCounts, String> {
    let size = generated * geometry.ids_per_token() * decode.dtype.size();
    let row = decode.data.get(request * size..(request + 1) * size).unwrap_or(&[]);
    let counts = match decode.dtype {
        Dtype::U8 => ActivationCounts::from_rows(geometry, row, generated),
        Dtype::U16 => {
            let ids: Vec<u16> = row.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b)).collect();
            ActivationCounts::from_rows(geometry, &ids, generated)
        }
        Dtype::I32 => {
            let ids: Vec<i32> = row.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b)).collect();
            ActivationCounts::from_rows(geometry, &ids, generated)
        }
        _ => return Err("decode is not u8, u16 or i32".to_owned()),
    };
    counts.map_err(|error| error.to_string())
}

pub(super) fn wrong(array: &str, problem: &str) -> Refusal {
    Refusal(format!("npz: {array} {problem}"))
}

pub(super) fn parse<'a>(name: &str, bytes: &'a [u8]) -> Result<Array<'a>, Refusal> {
    Array::parse(bytes).map_err(|error| Refusal(format!("npz: {name}: {error}")))
}

fn required(archive: &mut Archive<'_>, name: &str) -> Result<Vec<u8>, Refusal> {
    member(archive, name)?.ok_or_else(|| wrong(name, "is missing"))
}

pub(super) fn member(archive: &mut Archive<'_>, name: &str) -> Result<Option<Vec<u8>>, Refusal> {
    match archive.by_name(&format!("{name}.npy")) {
        Ok(file) => read_bytes(file, MAX_ARRAY_BYTES)
            .map(Some)
            .map_err(|error| Refusal(format!("npz: {name}: {error}"))),
        Err(ZipError::FileNotFound) => Ok(None),
        Err(error) => Err(Refusal(format!("npz: {name}: {error}"))),
    }
}

/// One text for each request; `None` where the array is absent.
pub(super) fn texts(archive: &mut Archive<'_>, name: &str, requests: usize) -> Result<Option<Vec<String>>, Refusal> {
    let Some(bytes) = member(archive, name)? else {
        return Ok(None);
    };
    let array = parse(name, &bytes)?;
    let Dtype::Text(characters) = array.dtype else {
        return Err(wrong(name, "is no text"));
    };
    if array.shape != [requests] {
        return Err(wrong(name, "does not have one text for each request"));
    }
    if characters == 0 {
        return Ok(Some(vec![String::new(); requests]));
    }
    let text = |element: &[u8]| -> Option<String> {
        let points = element.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b));
        points.take_while(|point| *point != 0).map(char::from_u32).collect()
    };
    let all: Option<Vec<String>> = array.data.chunks_exact(characters * 4).map(text).collect();
    all.map(Some)
        .ok_or_else(|| wrong(name, "has a text that is not Unicode"))
}
