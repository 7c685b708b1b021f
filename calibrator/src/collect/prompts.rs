//! JSON lines of OpenAI request bodies.

use std::{fs::File, io::Read, path::Path};

use coterie_locality::predictor::NgramCounter;
use serde_json::{Map, Value};

use crate::error::Error;

/// Largest prompt file: a ConfigMap holds 1 MiB, a file of the CLI may be larger.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;
/// Tokens to generate where a prompt does not say.
const DEFAULT_TOKENS: u64 = 64;
/// Most tokens to generate for one prompt.
const MAX_TOKENS: u64 = 512;

/// Which API a prompt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// `/v1/completions`.
    Completions,
    /// `/v1/chat/completions`.
    Chat,
}

impl Api {
    /// The API's path.
    pub fn path(self) -> &'static str {
        match self {
            Self::Completions => "/v1/completions",
            Self::Chat => "/v1/chat/completions",
        }
    }
}

/// A prompt, ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// Which API it is for.
    pub api: Api,
    /// The request body.
    pub body: Map<String, Value>,
}

impl Prompt {
    /// Hashed n-grams of its text, as routers count them: (bucket, count); empty where it has token ids instead.
    pub fn ngrams(&self) -> Vec<(u32, u32)> {
        let field = |name| self.body.get(name).map(Value::to_string).unwrap_or_default();
        let mut counter = NgramCounter::new();
        match self.api {
            Api::Completions => counter.push_prompt(&field("prompt")),
            Api::Chat => counter.push_messages(&field("messages")),
        }
        counter.ngrams()
    }
}

/// Reads a file of prompts, at most `limit` of them.
///
/// # Errors
/// When the file cannot be read, a line is not a request body, or no prompt is left.
pub fn read(path: &Path, limit: usize) -> Result<Vec<Prompt>, Error> {
    let unreadable =
        |error: std::io::Error| Error::input("PromptsUnreadable", format!("read prompts {}: {error}", path.display()));
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(Error::input(
            "PromptsUnreadable",
            format!("{} is larger than 256 MiB", path.display()),
        ));
    }
    parse(&text, limit)
}

/// Parses JSON lines; empty lines are passed over.
///
/// # Errors
/// As [`read`].
pub fn parse(text: &str, limit: usize) -> Result<Vec<Prompt>, Error> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .take(limit);
    let prompts = lines
        .map(|(number, line)| {
            prompt(line)
                .map_err(|why| Error::input("PromptsUnreadable", format!("prompts, line {}: {why}", number + 1)))
        })
        .collect::<Result<Vec<_>, _>>()?;
    if prompts.is_empty() {
        return Err(Error::input(
            "NoPrompts",
            "the prompt file is empty: give one OpenAI request body a line",
        ));
    }
    Ok(prompts)
}

fn prompt(line: &str) -> Result<Prompt, String> {
    let mut body: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| format!("not a JSON object ({error})"))?;
    let api = match (body.contains_key("prompt"), body.contains_key("messages")) {
        (true, false) => Api::Completions,
        (false, true) => Api::Chat,
        _ => return Err("needs exactly one of `prompt` and `messages`".to_owned()),
    };
    let asked = body
        .get("max_tokens")
        .or_else(|| body.get("max_completion_tokens"))
        .and_then(Value::as_u64);
    for field in [
        "stream",
        "stream_options",
        "max_completion_tokens",
        "n",
        "kv_transfer_params",
    ] {
        body.remove(field);
    }
    body.insert(
        "max_tokens".to_owned(),
        asked.unwrap_or(DEFAULT_TOKENS).clamp(1, MAX_TOKENS).into(),
    );
    body.insert("return_token_ids".to_owned(), true.into());
    Ok(Prompt { api, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_completions_and_chat_and_takes_out_what_a_probe_cannot_answer() {
        let text =
            "{\"prompt\":\"a\",\"stream\":true,\"max_tokens\":9999}\n\n{\"messages\":[],\"max_completion_tokens\":7}\n";
        let prompts = parse(text, 10).unwrap();
        assert_eq!(prompts[0].api, Api::Completions);
        assert_eq!(prompts[0].body["max_tokens"], 512);
        assert!(!prompts[0].body.contains_key("stream"));
        assert_eq!(prompts[1].api.path(), "/v1/chat/completions");
        assert_eq!(prompts[1].body["max_tokens"], 7);
        assert_eq!(parse(text, 1).unwrap().len(), 1);
    }

    #[test]
    fn text_is_counted_as_routers_count_it() {
        let text =
            "{\"prompt\":\"h\\u00e9\"}\n{\"messages\":[{\"role\":\"user\",\"content\":\"hé\"}]}\n{\"prompt\":[1,2]}\n";
        let mut counter = NgramCounter::new();
        counter.push("hé".as_bytes());
        let counted: Vec<_> = parse(text, 3).unwrap().iter().map(Prompt::ngrams).collect();
        assert_eq!(counted, [counter.ngrams(), counter.ngrams(), Vec::new()]);
    }

    #[test]
    fn names_the_line_that_is_wrong() {
        for (text, want) in [
            ("{\"prompt\":\"a\"}\nnot json\n", "line 2"),
            ("{}", "line 1"),
            ("{\"prompt\":1,\"messages\":2}", "exactly one"),
            ("\n\n", "empty"),
        ] {
            let error = parse(text, 10).unwrap_err();
            assert!(error.to_string().contains(want), "{error}");
            assert_eq!(error.exit_code(), 65);
        }
    }
}
