//! A recording file, checked as a whole so that nothing it holds can fail later.

use std::path::{Path, PathBuf};

use super::npy;
use super::npz::Npz;

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file is missing or unreadable.
    #[error("cannot read recording {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a recording with prompts.
    #[error(
        "recording {path}: {reason}. It must be an .npz with prefill, decode, domain, prompt_tokens, prompt_ids, generated_ids"
    )]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// Requests with their real continuations and expert choices.
#[derive(Clone)]
pub struct Recording {
    /// Layers of the recorded model.
    pub layers: usize,
    /// Experts per layer.
    pub experts: usize,
    /// Experts per token and layer.
    pub top_k: usize,
    /// Generated tokens per request.
    pub steps: usize,
    requests: Vec<Request>,
    /// u16 `[requests, layers, experts]`.
    prefill: Vec<u16>,
    /// u8 `[requests, steps, layers, top_k]`.
    decode: Vec<u8>,
}

#[derive(Clone)]
struct Request {
    domain: String,
    prompt: Vec<u32>,
    generated: Vec<u32>,
}

impl Recording {
    /// Reads and checks a recording file. Blocking.
    pub fn load(path: &Path) -> Result<Self, RecordingError> {
        let bytes = std::fs::read(path).map_err(|source| RecordingError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&bytes).map_err(|reason| RecordingError::Invalid {
            path: path.to_owned(),
            reason,
        })
    }

    /// Checks the bytes of a recording file.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut file = Npz::open(bytes)?;
        let named = |name: &str, e: String| format!("array {name:?}: {e}");
        let mut words = |name: &str| -> Result<(Vec<usize>, Vec<u16>), String> {
            let member = file.member(name)?;
            let array = npy::parse(&member).map_err(|e| named(name, e))?;
            Ok((array.shape.clone(), array.words().map_err(|e| named(name, e))?))
        };
        let (prefill_shape, prefill) = words("prefill")?;
        let (lengths_shape, lengths) = words("prompt_tokens")?;
        let (prompt_shape, prompts) = words("prompt_ids")?;
        let (generated_shape, generated) = words("generated_ids")?;
        let member = file.member("decode")?;
        let array = npy::parse(&member).map_err(|e| named("decode", e))?;
        let (decode_shape, decode) = (array.shape.clone(), array.bytes().map_err(|e| named("decode", e))?);
        let member = file.member("domain")?;
        let domains = npy::parse(&member)
            .and_then(|a| a.strings())
            .map_err(|e| named("domain", e))?;

        let ([n, layers, experts], [m, steps, decode_layers, top_k]) = (axes(&prefill_shape)?, axes(&decode_shape)?);
        let ([rows, width], [generated_rows, generated_width]) = (axes(&prompt_shape)?, axes(&generated_shape)?);
        let same = [m, rows, generated_rows, lengths.len(), domains.len()]
            .iter()
            .all(|rows| *rows == n);
        if !same || lengths_shape.len() != 1 || decode_layers != layers || generated_width != steps {
            return Err("the arrays' shapes do not belong together".to_owned());
        }
        if n == 0 || steps == 0 || layers == 0 || width == 0 || !(1..=256).contains(&experts) || top_k == 0 {
            return Err("it holds no requests".to_owned());
        }
        let ids = |words: &[u16]| words.iter().map(|id| u32::from(*id)).collect::<Vec<u32>>();
        let requests = domains
            .into_iter()
            .zip(prompts.chunks_exact(width))
            .zip(generated.chunks_exact(steps))
            .zip(&lengths)
            .map(|(((domain, prompt), generated), length)| {
                let prompt = prompt.get(..*length as usize).filter(|p| !p.is_empty());
                let prompt =
                    prompt.ok_or_else(|| format!("a prompt has {length} tokens, the array {width} columns"))?;
                Ok(Request {
                    domain,
                    prompt: ids(prompt),
                    generated: ids(generated),
                })
            })
            .collect::<Result<Vec<_>, String>>()?;
        let recording = Self {
            layers,
            experts,
            top_k,
            steps,
            requests,
            prefill,
            decode,
        };
        recording.check_gates()?;
        Ok(recording)
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are none (never true of a loaded one).
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Domain of a request: one name, or `a+b` for a blend.
    pub fn domain(&self, request: usize) -> &str {
        &self.requests[request].domain
    }

    /// Tokens of a request's prompt.
    pub fn prompt(&self, request: usize) -> &[u32] {
        &self.requests[request].prompt
    }

    /// The request's continuation.
    pub fn generated(&self, request: usize) -> &[u32] {
        &self.requests[request].generated
    }

    /// Experts chosen at generated token `step`: `[layers, top_k]`.
    pub fn decode_row(&self, request: usize, step: usize) -> &[u8] {
        let width = self.layers * self.top_k;
        let at = (request * self.steps + step) * width;
        &self.decode[at..at + width]
    }

    /// Times each expert of a layer was chosen over the prompt.
    pub fn prefill_counts(&self, request: usize, layer: usize) -> &[u16] {
        let at = (request * self.layers + layer) * self.experts;
        &self.prefill[at..at + self.experts]
    }

    /// Expert choices for every prompt token, `[prompt, layers, top_k]`, made so that their counts are exactly the recorded ones: the recording
    /// holds counts only.
    pub fn prefill_rows(&self, request: usize) -> Vec<u8> {
        let tokens = self.prompt(request).len();
        deal(tokens, self.layers, self.top_k, |layer| {
            self.prefill_counts(request, layer)
        })
    }

    fn check_gates(&self) -> Result<(), String> {
        if let Some(expert) = self.decode.iter().find(|e| **e as usize >= self.experts) {
            return Err(format!(
                "decode names expert {expert}, prefill has {} per layer",
                self.experts
            ));
        }
        for request in 0..self.len() {
            let tokens = self.prompt(request).len();
            for layer in 0..self.layers {
                let counts = self.prefill_counts(request, layer);
                let total: usize = counts.iter().map(|n| *n as usize).sum();
                if total != tokens * self.top_k || counts.iter().any(|n| *n as usize > tokens) {
                    return Err(format!(
                        "request {request}, layer {layer}: prefill counts do not fit {tokens} tokens x {} experts",
                        self.top_k
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Choices `[tokens, layers, top_k]` of which each layer's counts are exactly those given.
///
/// Each layer's choices, written one expert after the other, are dealt to the tokens in turn: no expert was chosen more often than there are
/// tokens, so no token gets one twice, and as the total is tokens x `top_k` every token gets `top_k`.
pub(super) fn deal<'c, C: Copy + TryInto<usize> + 'c>(
    tokens: usize,
    layers: usize,
    top_k: usize,
    counts: impl Fn(usize) -> &'c [C],
) -> Vec<u8> {
    let mut rows = vec![0; tokens * layers * top_k];
    for layer in 0..layers {
        let counts = counts(layer).iter().enumerate();
        let choices = counts.flat_map(|(expert, n)| std::iter::repeat_n(expert as u8, (*n).try_into().unwrap_or(0)));
        for (i, expert) in choices.take(tokens * top_k).enumerate() {
            let (token, slot) = (i % tokens, i / tokens);
            rows[(token * layers + layer) * top_k + slot] = expert;
        }
    }
    rows
}

fn axes<const N: usize>(shape: &[usize]) -> Result<[usize; N], String> {
    shape
        .try_into()
        .map_err(|_| format!("an array has {} axes instead of {N}", shape.len()))
}
