//! Recordings from files: `.npz` with every choice, `.npz` with counts as the ELDR artifact writes them, and sample containers.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coterie_locality::{ActivationCounts, Geometry};

use super::{Choices, Recording, RequestGates};
use crate::recording::npy;
use crate::recording::npz::Npz;
use crate::tokenizer::TextCodec;

/// Largest file that is read.
pub const MAX_FILE_BYTES: u64 = 2 << 30;
/// Most requests of a recording.
pub const MAX_REQUESTS: usize = 1 << 20;
/// Most generated tokens of one request.
pub const MAX_STEPS: usize = 1 << 16;

/// Why a file gives no recording.
#[derive(Debug, thiserror::Error)]
pub enum GatesError {
    /// The file is missing or unreadable.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file does not hold gates.
    #[error(
        "{path}: {reason}. Gates come from an .npz with prefill, decode, domain, prompt_tokens, or from a sample container with replayed samples"
    )]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl Recording {
    /// Reads and checks a file of any of the forms. `codec`, the tokenizer of the recorded model, turns prompt ids into text where the file
    /// has them. `seed` draws the choices of requests that have decode counts only. Blocking.
    pub fn load(path: &Path, codec: Option<&TextCodec>, seed: u64) -> Result<Self, GatesError> {
        let unreadable = |source| GatesError::Read {
            path: path.to_owned(),
            source,
        };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        Self::parse(&bytes, codec, seed).map_err(|reason| GatesError::Invalid {
            path: path.to_owned(),
            reason,
        })
    }

    /// The same from bytes. The error says what is wrong.
    pub fn parse(bytes: &[u8], codec: Option<&TextCodec>, seed: u64) -> Result<Self, String> {
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(format!("it has more than {MAX_FILE_BYTES} bytes"));
        }
        if bytes.starts_with(b"COTSAMPL") {
            return super::samples::from_container(bytes, seed);
        }
        let mut file = Npz::open(bytes)?;
        if file.has("prefill_counts") {
            let samples =
                coterie_locality::npz::read_calibration(bytes, None, None).map_err(|error| error.to_string())?;
            return super::samples::from_samples(samples.into_iter().map(Ok), seed);
        }
        from_choices(&mut file, codec)
    }
}

/// Arrays of whole numbers with their shapes.
type Words = (Vec<usize>, Vec<u16>);

fn words(file: &mut Npz<'_>, name: &str) -> Result<Words, String> {
    let member = file.member(name)?;
    let array = npy::parse(&member).map_err(|e| format!("array {name:?}: {e}"))?;
    // Expert ids are bytes in models of at most 256 experts.
    let values = match array.dtype.as_str() {
        "|u1" => array.data.iter().map(|b| u16::from(*b)).collect(),
        _ => array.words().map_err(|e| format!("array {name:?}: {e}"))?,
    };
    Ok((array.shape, values))
}

fn from_choices(file: &mut Npz<'_>, codec: Option<&TextCodec>) -> Result<Recording, String> {
    let (prefill_shape, prefill) = words(file, "prefill")?;
    let (lengths_shape, lengths) = words(file, "prompt_tokens")?;
    let (decode_shape, decode) = words(file, "decode")?;
    let member = file.member("domain")?;
    let names = npy::parse(&member)
        .and_then(|a| a.strings())
        .map_err(|e| format!("array \"domain\": {e}"))?;
    let [n, layers, experts] = axes("prefill", &prefill_shape)?;
    let [rows, steps, decode_layers, top_k] = axes("decode", &decode_shape)?;
    if rows != n || decode_layers != layers || lengths_shape != [n] || names.len() != n {
        return Err("the arrays' shapes do not belong together".to_owned());
    }
    if n == 0 || n > MAX_REQUESTS || steps == 0 || steps > MAX_STEPS {
        return Err(format!(
            "{n} requests of {steps} generated tokens: it needs 1 to {MAX_REQUESTS} of 1 to {MAX_STEPS}"
        ));
    }
    let geometry = Geometry::new(layers, experts, top_k).map_err(|e| e.to_string())?;
    let prompts = if file.has("prompt_ids") {
        Some(words(file, "prompt_ids")?)
    } else {
        None
    };
    let width = match &prompts {
        Some((shape, _)) => {
            let [rows, width] = axes("prompt_ids", shape)?;
            if rows != n {
                return Err("prompt_ids has not one row for each request".to_owned());
            }
            width
        }
        None => 0,
    };
    let (domain_names, domains) = intern(&names)?;
    let requests = domains.into_iter().enumerate().map(|(request, domains)| {
        let tokens = lengths[request];
        let cells = prefill[request * geometry.cells()..][..geometry.cells()].iter();
        let cells = cells.map(|c| u32::from(*c)).collect();
        let row = steps * geometry.ids_per_token();
        let fails = |e: &dyn std::fmt::Display| format!("request {request}: {e}");
        let prefill = ActivationCounts::from_cells(&geometry, cells, u64::from(tokens)).map_err(|e| fails(&e))?;
        prefill.check_conservation().map_err(|e| fails(&e))?;
        let text = match (codec, &prompts) {
            (Some(codec), Some((_, ids))) => {
                let ids = ids[request * width..][..width].get(..usize::from(tokens));
                let ids = ids.ok_or_else(|| fails(&"its prompt is longer than prompt_ids"))?;
                Some(ids.iter().flat_map(|id| codec.piece(u32::from(*id))).copied().collect())
            }
            _ => None,
        };
        Ok(Arc::new(RequestGates {
            prompt_tokens: u32::from(tokens),
            prefill,
            decode: Choices::new(geometry, &decode[request * row..][..row]).map_err(|e| fails(&e))?,
            domains,
            ngrams: Vec::new(),
            text,
        }))
    });
    Ok(Recording {
        geometry,
        requests: requests.collect::<Result<_, String>>()?,
        domain_names,
    })
}

/// Sorted domain names, and each request's positions in them.
fn intern(names: &[String]) -> Result<(Vec<String>, Vec<Vec<u16>>), String> {
    let parts = |name: &str| -> Vec<String> { name.split('+').filter(|p| !p.is_empty()).map(str::to_owned).collect() };
    let mut all: Vec<String> = names.iter().flat_map(|n| parts(n)).collect();
    all.sort();
    all.dedup();
    if all.len() > 4096 {
        return Err(format!("it names {} domains, at most 4096 are read", all.len()));
    }
    let domains = names
        .iter()
        .map(|name| {
            let found: Vec<u16> = parts(name)
                .iter()
                .filter_map(|p| all.binary_search(p).ok())
                .map(|at| at as u16)
                .collect();
            match found.len() {
                0..=2 => Ok(found),
                more => Err(format!("domain {name:?} blends {more} domains, at most 2 are read")),
            }
        })
        .collect::<Result<_, String>>()?;
    Ok((all, domains))
}

fn axes<const N: usize>(name: &str, shape: &[usize]) -> Result<[usize; N], String> {
    shape
        .try_into()
        .map_err(|_| format!("array {name:?} has {} axes instead of {N}", shape.len()))
}
