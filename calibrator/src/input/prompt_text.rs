//! Text of a recording's prompts, hashed at once.

use std::path::Path;

use coterie_locality::predictor::NgramCounter;
use tokenizers::Tokenizer;

use super::gates::{Archive, Refusal, member, parse, texts, wrong};

/// (bucket, count) of a text's n-grams.
type Ngrams = Vec<(u32, u32)>;

/// Hashed n-grams of each prompt: of `prompt` where there is such an array, else of `prompt_ids` where a tokenizer is given.
pub(super) fn ngrams(
    archive: &mut Archive<'_>,
    lengths: &[u32],
    tokenizer: Option<&Path>,
) -> Result<Option<Vec<Ngrams>>, Refusal> {
    if let Some(texts) = texts(archive, "prompt", lengths.len())? {
        return Ok(Some(texts.iter().map(|text| hashed(text)).collect()));
    }
    let Some(path) = tokenizer else {
        return Ok(None);
    };
    let unreadable = |what: &dyn std::fmt::Display| Refusal::new(format!("tokenizer {}: {what}", path.display()));
    let file = std::fs::read(path).map_err(|error| unreadable(&error))?;
    let tokenizer = Tokenizer::from_bytes(file).map_err(|error| unreadable(&error))?;
    let Some(bytes) = member(archive, "prompt_ids")? else {
        return Err(wrong(
            "prompt_ids",
            "is missing: this recording has no text, leave --tokenizer out",
        ));
    };
    let array = parse("prompt_ids", &bytes)?;
    let width = match array.shape.as_slice() {
        [requests, width] if *requests == lengths.len() && *width > 0 => *width,
        _ => return Err(wrong("prompt_ids", "does not have one row for each request")),
    };
    let ids = array
        .whole_numbers()
        .ok_or_else(|| wrong("prompt_ids", "has values that are no tokens"))?;
    let text = |(row, length): (&[u32], &u32)| {
        let own = row.get(..(*length as usize).min(width)).unwrap_or(row);
        let text = tokenizer.decode(own, true);
        text.map(|text| hashed(&text))
            .map_err(|error| wrong("prompt_ids", &error.to_string()))
    };
    let all: Result<Vec<_>, Refusal> = ids.chunks_exact(width).zip(lengths).map(text).collect();
    all.map(Some)
}

fn hashed(text: &str) -> Ngrams {
    let mut counter = NgramCounter::new();
    counter.push(text.as_bytes());
    counter.ngrams()
}
