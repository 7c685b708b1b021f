//! The prompt as prefix caches see it: its first bytes, or its first token ids.

use std::borrow::Cow;

use coterie_locality::prefix_hash::{text_key, token_key};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{fields::Fields, request::Endpoint};

/// Hash of the prompt's first `bytes` bytes; `None` when there is nothing to hash.
pub(super) fn key(endpoint: Endpoint, fields: &Fields<'_>, bytes: usize) -> Option<u64> {
    match endpoint {
        Endpoint::Completions => prompt_key(fields.get("prompt")?, bytes),
        Endpoint::ChatCompletions => {
            // Templates put tools before the messages, so prompts with other tools share no prefix.
            let tools = fields.get("tools").filter(|t| t.get() != "null");
            let mut text = match tools.and_then(|t| text_key(t.get().as_bytes(), usize::MAX)) {
                Some(digest) => digest.to_be_bytes().to_vec(),
                None => Vec::new(),
            };
            let budget = bytes.saturating_add(text.len());
            render(fields.get("messages")?, budget, &mut text);
            text_key(&text, budget)
        }
    }
}

/// Whether a completion's `prompt` holds more than one prompt.
pub(super) fn several_prompts(prompt: &RawValue) -> bool {
    let inner = prompt.get().strip_prefix('[').map(str::trim_start);
    // A list of numbers is one prompt, whatever its length.
    if inner.is_none_or(|i| i.starts_with(|c: char| c.is_ascii_digit() || c == '-')) {
        return false;
    }
    serde_json::from_str::<Vec<&RawValue>>(prompt.get()).is_ok_and(|items| items.len() > 1)
}

/// The four forms of a prompt: `text`, `[text]`, `[ids]`, `[[ids]]`. Of several prompts the first counts.
fn prompt_key(prompt: &RawValue, bytes: usize) -> Option<u64> {
    let json = prompt.get();
    if json.starts_with('"') {
        let text: Cow<'_, str> = serde_json::from_str::<Text<'_>>(json).ok()?.0;
        return text_key(text.as_bytes(), bytes);
    }
    if let Ok(ids) = serde_json::from_str::<Vec<u32>>(json) {
        return token_key(&ids, bytes);
    }
    let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    let first = items.first()?;
    // One level only: the form has no deeper ones.
    if first.get().starts_with('"') || serde_json::from_str::<Vec<u32>>(first.get()).is_ok() {
        return prompt_key(first, bytes);
    }
    None
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

/// Appends the messages in order until `budget` bytes are there. Not the engine's template, but equal where its prefixes are equal.
fn render(messages: &RawValue, budget: usize, out: &mut Vec<u8>) {
    let Ok(messages) = serde_json::from_str::<Vec<&RawValue>>(messages.get()) else {
        return;
    };
    for message in messages {
        if out.len() >= budget {
            return;
        }
        let Ok(message) = serde_json::from_str::<Message<'_>>(message.get()) else {
            continue;
        };
        out.extend(message.role.map_or("", RawValue::get).bytes());
        out.push(b'\n');
        if let Some(content) = message.content {
            render_content(content, out);
        }
        out.extend(message.tool_calls.map_or("", RawValue::get).bytes());
        out.push(b'\n');
    }
}

fn render_content(content: &RawValue, out: &mut Vec<u8>) {
    let json = content.get();
    if let Ok(Text(text)) = serde_json::from_str(json) {
        out.extend(text.bytes());
        return;
    }
    let Ok(parts) = serde_json::from_str::<Vec<&RawValue>>(json) else {
        return;
    };
    for part in parts {
        match serde_json::from_str::<Part<'_>>(part.get()) {
            Ok(Part { text: Some(text) }) => out.extend(text.bytes()),
            // Images and the like count by what names them.
            _ => out.extend(part.get().bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(body: &str, bytes: usize) -> Option<u64> {
        key(
            Endpoint::ChatCompletions,
            &Fields::parse(body.as_bytes()).unwrap(),
            bytes,
        )
    }

    fn completion(prompt: &str) -> Option<u64> {
        let body = format!(r#"{{"prompt":{prompt}}}"#);
        key(Endpoint::Completions, &Fields::parse(body.as_bytes()).unwrap(), 64)
    }

    #[test]
    fn all_forms_of_a_prompt_have_keys_and_escapes_do_not_matter() {
        assert_eq!(completion(r#""Héllo""#), completion(r#""H\u00e9llo""#));
        assert_eq!(completion(r#"["abc"]"#), completion(r#""abc""#));
        assert_eq!(completion("[[1,23]]"), completion("[1,23]"));
        assert_ne!(completion("[1,23]"), completion("[12,3]"));
        for empty in [r#""""#, "[]", "[[]]", "7", "[[[1]]]", r#"[{"a":1}]"#] {
            assert_eq!(completion(empty), None, "{empty}");
        }
    }

    #[test]
    fn several_prompts_are_seen() {
        for (prompt, several) in [
            (r#""a""#, false),
            ("[1,2,3]", false),
            (r#"["a"]"#, false),
            (r#"["a","b"]"#, true),
            ("[[1],[2]]", true),
            ("[[1]]", false),
        ] {
            let raw = RawValue::from_string(prompt.to_owned()).unwrap();
            assert_eq!(several_prompts(&raw), several, "{prompt}");
        }
    }

    #[test]
    fn chats_of_one_beginning_share_a_key_and_tools_part_them() {
        let start = r#"{"messages":[{"role":"system","content":"You are a long system prompt"}"#;
        let one = chat(&format!(r#"{start},{{"role":"user","content":"a"}}]}}"#), 16);
        let two = chat(
            &format!(r#"{start},{{"role":"user","content":[{{"type":"text","text":"b"}}]}}]}}"#),
            16,
        );
        assert!(one.is_some());
        assert_eq!(one, two);
        let tools = chat(&format!(r#"{start}],"tools":[{{"type":"function"}}]}}"#), 16);
        assert_ne!(one, tools);
        for odd in [
            r#"{"messages":[{"role":"assistant","content":null,"tool_calls":[{}]}]}"#,
            r#"{"messages":[3,{"content":[{"type":"image_url","image_url":{"url":"data:x"}}]}]}"#,
        ] {
            assert!(chat(odd, 64).is_some(), "{odd}");
        }
        assert_eq!(chat(r#"{"messages":7}"#, 64), None);
    }
}
