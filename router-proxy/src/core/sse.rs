//! Events of a server-sent stream, counted in passing whatever the boundaries of its chunks.

/// Counts data events byte by byte; keeps no bytes.
#[derive(Debug, Default)]
pub(crate) struct EventCounter {
    events: u64,
    line: Line,
    data_seen: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    #[default]
    Empty,
    Data,
    Other,
}

impl EventCounter {
    /// Takes the next bytes of the stream.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match (byte, self.line) {
                (b'\r', _) => {}
                (b'\n', Line::Empty) => {
                    self.events += u64::from(std::mem::take(&mut self.data_seen));
                }
                (b'\n', line) => {
                    self.data_seen |= line == Line::Data;
                    self.line = Line::Empty;
                }
                // `data` is the only field that begins so.
                (b'd', Line::Empty) => self.line = Line::Data,
                (_, Line::Empty) => self.line = Line::Other,
                _ => {}
            }
        }
    }

    /// Data events that have ended.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Whether the stream is inside an event.
    pub(crate) fn inside(&self) -> bool {
        self.data_seen || self.line != Line::Empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_boundaries_comments_and_line_ends_do_not_matter() {
        let stream =
            ": ping\n\ndata: {\"a\":\"ä\"}\n\r\nevent: x\nid: 1\ndata: 2\ndata: 3\n\ndata: [DONE]\r\n\r\n".as_bytes();
        for size in 1..stream.len() {
            let mut counter = EventCounter::default();
            stream.chunks(size).for_each(|c| counter.feed(c));
            assert_eq!(counter.events(), 3, "chunks of {size}");
            assert!(!counter.inside());
        }
        let mut cut = EventCounter::default();
        cut.feed(b"data: {\"a");
        assert!(cut.inside());
        cut.feed(b"\"}\n");
        assert!(cut.inside());
        cut.feed(b"\n");
        assert!(!cut.inside());
    }
}
