//! The text of an OpenAI request: which of its bytes are hashed, for calibration and for routing alike.
//!
//! A completion's text is its prompt; of several, all in order. A chat's text is that of its messages in order: strings and parts that
//! have a `text`. Roles, names, tools, images and other data are none, and nothing is put between. Token ids have no text.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ngrams::NgramCounter;

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
}

impl NgramCounter {
    /// Adds the text of a completion's `prompt`, given as JSON. What is no text adds nothing.
    pub fn push_prompt(&mut self, prompt: &str) {
        if self.push_string(prompt) {
            return;
        }
        // Token ids may be very many: they are not looked at.
        let inner = prompt.trim_start().strip_prefix('[').map(str::trim_start);
        if inner.is_some_and(|i| i.starts_with('"')) {
            for item in items(prompt) {
                self.push_string(item.get());
            }
        }
    }

    /// Adds the text of a chat's `messages`, given as JSON. What is no text adds nothing.
    pub fn push_messages(&mut self, messages: &str) {
        for message in items(messages) {
            let Ok(Message { content: Some(content) }) = serde_json::from_str(message.get()) else {
                continue;
            };
            if self.push_string(content.get()) {
                continue;
            }
            for part in items(content.get()) {
                if let Ok(Part { text: Some(text) }) = serde_json::from_str(part.get()) {
                    self.push_string(text.get());
                }
            }
        }
    }

    /// Adds a JSON string; whether it was one.
    fn push_string(&mut self, json: &str) -> bool {
        let text: Result<Text<'_>, _> = serde_json::from_str(json);
        if let Ok(Text(text)) = &text {
            self.push(text.as_bytes());
        }
        text.is_ok()
    }
}

fn items(json: &str) -> Vec<&RawValue> {
    serde_json::from_str(json).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(u32, u32)> {
        let mut counter = NgramCounter::new();
        counter.push(text.as_bytes());
        counter.ngrams()
    }

    fn prompt(json: &str) -> Vec<(u32, u32)> {
        let mut counter = NgramCounter::new();
        counter.push_prompt(json);
        counter.ngrams()
    }

    fn messages(json: &str) -> Vec<(u32, u32)> {
        let mut counter = NgramCounter::new();
        counter.push_messages(json);
        counter.ngrams()
    }

    #[test]
    fn a_prompt_is_its_text_however_it_is_spelled() {
        assert_eq!(prompt(r#""H\u00e9llo\n""#), of("Héllo\n"));
        assert_eq!(prompt(r#" [ "ab", "cd" ]"#), of("abcd"));
        assert_eq!(prompt(r#""\u0000\u0001""#), of("\0\u{1}"));
        for none in [
            "[1,2]",
            "[[1,2]]",
            r#"[1,"a"]"#,
            "7",
            "null",
            "{}",
            "[]",
            r#""""#,
            r#"["a""#,
        ] {
            assert!(prompt(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn a_chat_is_the_text_of_its_messages_and_nothing_else() {
        let plain = r#"[{"role":"system","content":"be brief"},{"role":"user","name":"x","content":"hi"}]"#;
        assert_eq!(messages(plain), of("be briefhi"));
        let parts = r#"[{"role":"user","content":[{"type":"text","text":"what is "},
            {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"text","text":"this"}]},
            {"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f"}}]},3]"#;
        assert_eq!(messages(parts), of("what is this"));
        for none in ["7", "{}", r#"[{"content":7}]"#, r#"[{"content":[{"text":7},3]}]"#, "["] {
            assert!(messages(none).is_empty(), "{none}");
        }
    }
}
