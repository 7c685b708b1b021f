//! The growing text of an answer: unfinished characters and possible beginnings of a stop string are held back.

use crate::tokenizer::PartialText;

#[derive(Default)]
pub(super) struct TextStream {
    partial: PartialText,
    /// Complete text that is not out yet.
    pending: String,
}

pub(super) struct Piece {
    pub(super) text: String,
    /// Index of the stop string that was found.
    pub(super) stopped_by: Option<usize>,
}

impl TextStream {
    /// Adds a token's bytes. With `may_stop`, the first stop string ends the text; `last` lets everything out.
    pub(super) fn push(&mut self, bytes: &[u8], stops: &[String], include: bool, may_stop: bool, last: bool) -> Piece {
        self.pending.push_str(&self.partial.push(bytes));
        if may_stop {
            let found = stops
                .iter()
                .enumerate()
                .filter_map(|(i, s)| self.pending.find(s.as_str()).map(|at| (at, i)));
            if let Some((at, index)) = found.min() {
                let end = if include { at + stops[index].len() } else { at };
                self.pending.truncate(end);
                return Piece {
                    text: std::mem::take(&mut self.pending),
                    stopped_by: Some(index),
                };
            }
        }
        let held = if last {
            0
        } else {
            stops.iter().map(|s| s.len().saturating_sub(1)).max().unwrap_or(0)
        };
        let mut out = self.pending.len().saturating_sub(held);
        while !self.pending.is_char_boundary(out) {
            out -= 1;
        }
        let rest = self.pending.split_off(out);
        Piece {
            text: std::mem::replace(&mut self.pending, rest),
            stopped_by: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(pieces: &[&str], stops: &[&str], include: bool) -> (String, Option<usize>) {
        let stops: Vec<String> = stops.iter().map(|s| (*s).to_owned()).collect();
        let mut stream = TextStream::default();
        let mut text = String::new();
        for (i, piece) in pieces.iter().enumerate() {
            let out = stream.push(piece.as_bytes(), &stops, include, true, i + 1 == pieces.len());
            text.push_str(&out.text);
            if out.stopped_by.is_some() {
                return (text, out.stopped_by);
            }
        }
        (text, None)
    }

    #[test]
    fn a_stop_string_over_two_tokens_is_found_and_cut() {
        assert_eq!(
            run(&["one ", "E", "ND two"], &["END"], false),
            ("one ".to_owned(), Some(0))
        );
        assert_eq!(
            run(&["one ", "E", "ND two"], &["END"], true),
            ("one END".to_owned(), Some(0))
        );
        assert_eq!(run(&["one ", "E", "nd"], &["END"], false), ("one End".to_owned(), None));
        assert_eq!(run(&["aé", "ñb"], &["zzz"], false), ("aéñb".to_owned(), None));
    }
}
