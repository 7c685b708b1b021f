//! Text to tokens and back, whole and piece by piece.

use std::path::Path;

use tokenizers::Tokenizer;

use crate::model::ModelError;

/// The model's tokenizer with every token's bytes at hand.
pub struct TextCodec {
    tokenizer: Tokenizer,
    /// Bytes of each token; empty for special tokens, which never appear in text.
    pieces: Vec<Vec<u8>>,
}

impl TextCodec {
    /// Loads `tokenizer.json` of a model folder. Blocking.
    pub fn load(folder: &Path) -> Result<Self, ModelError> {
        let path = folder.join("tokenizer.json");
        let bytes = std::fs::read(&path).map_err(|source| ModelError::Read { path, source })?;
        let tokenizer = Tokenizer::from_bytes(bytes).map_err(|e| ModelError::Tokenizer(e.to_string()))?;
        let special: Vec<u32> = tokenizer
            .get_added_tokens_decoder()
            .iter()
            .filter(|(_, t)| t.special)
            .map(|(id, _)| *id)
            .collect();
        let pieces = (0..tokenizer.get_vocab_size(true) as u32)
            .map(|id| match tokenizer.id_to_token(id) {
                Some(token) if !special.contains(&id) => token_bytes(&token),
                _ => Vec::new(),
            })
            .collect();
        Ok(Self { tokenizer, pieces })
    }

    /// Tokens of a text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        let encoding = self.tokenizer.encode(text, false).map_err(|e| e.to_string())?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Text of tokens; bytes that are no UTF-8 become U+FFFD, special tokens nothing.
    pub fn decode(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> = ids.iter().flat_map(|id| self.piece(*id)).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Text of an answer's tokens as a stream shows it: as [`Self::decode`], without an unfinished character at the end.
    pub fn decode_streamed(&self, ids: &[u32]) -> String {
        let mut pending = PartialText::default();
        ids.iter().map(|id| pending.push(self.piece(*id))).collect()
    }

    /// Bytes of one token; none for special and unknown ones.
    pub fn piece(&self, id: u32) -> &[u8] {
        self.pieces.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// Tokens in the vocabulary.
    pub fn vocab_size(&self) -> usize {
        self.pieces.len()
    }
}

/// Holds back the bytes of a character that is not complete yet.
#[derive(Default)]
pub struct PartialText {
    held: Vec<u8>,
}

impl PartialText {
    /// Adds a token's bytes and returns the text that is complete now.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = self.held.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    rest = after;
                    let Some(bad) = error.error_len() else { break };
                    text.push('\u{FFFD}');
                    rest = &rest[bad..];
                }
            }
        }
        self.held = rest.to_vec();
        text
    }
}

/// A byte-level BPE token is spelt in an alphabet of 256 printable characters: those bytes that print stand for themselves, the
/// others, in order, for the characters from U+0100 on.
fn token_bytes(token: &str) -> Vec<u8> {
    let prints = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let others: Vec<u8> = (0..=255).filter(|b| !prints(*b)).collect();
    let byte = |c: char| {
        let code = c as u32;
        match u8::try_from(code) {
            Ok(b) if prints(b) => Some(b),
            _ => others.get(code.checked_sub(0x100)? as usize).copied(),
        }
    };
    let mut bytes = Vec::with_capacity(token.len());
    for c in token.chars() {
        match byte(c) {
            Some(b) => bytes.push(b),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}
