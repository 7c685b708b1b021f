//! Expert choices of generated tokens as bit sets, so that a decode step is a handful of ORs per request.

use coterie_locality::Geometry;

use crate::fleet::gates::Recording;

/// Bit sets of the experts that each generated token of each request uses: `[requests][tokens][layers][words]`.
///
/// A request that runs longer than its recorded tokens starts again at the first: its statistics stay its own.
#[derive(Clone, Debug)]
pub struct Activity {
    geometry: Geometry,
    /// 64-bit words per layer.
    words: usize,
    /// Where each request's tokens start, in tokens; one more than there are requests.
    starts: Vec<u32>,
    bits: Vec<u64>,
}

impl Activity {
    /// Packs the choices of all requests of a recording. Every request must have generated tokens.
    pub fn new(recording: &Recording) -> Self {
        let geometry = recording.geometry;
        let words = geometry.experts.div_ceil(64);
        let per_row = geometry.layers * words;
        let tokens = recording.requests.iter().map(|r| r.decode.tokens()).sum::<usize>();
        let (mut starts, mut bits) = (vec![0], Vec::with_capacity(tokens * per_row));
        for request in &recording.requests {
            for token in 0..request.decode.tokens().max(1) {
                let at = bits.len();
                bits.resize(at + per_row, 0u64);
                request.decode.for_each(token, |layer, expert| {
                    bits[at + layer * words + expert / 64] |= 1 << (expert % 64);
                });
            }
            starts.push((bits.len() / per_row) as u32);
        }
        Self {
            geometry,
            words,
            starts,
            bits,
        }
    }

    /// Shape of the model.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// 64-bit words per layer.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Words of one token: layers x words.
    pub fn row_words(&self) -> usize {
        self.geometry.layers * self.words
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Generated tokens that are recorded of a request.
    pub fn tokens(&self, request: usize) -> u32 {
        self.starts[request + 1] - self.starts[request]
    }

    /// Experts of generated token `position` of a request, `[layers][words]`.
    pub fn row(&self, request: usize, position: u32) -> &[u64] {
        let token = self.starts[request] + position % self.tokens(request);
        let at = token as usize * self.row_words();
        &self.bits[at..at + self.row_words()]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::recording;
    use super::*;

    #[test]
    fn rows_hold_the_chosen_experts_and_wrap() {
        let activity = Activity::new(&recording((2, 70, 2), &[&[0, 69, 1, 2, 3, 64, 5, 6]]));
        assert_eq!((activity.len(), activity.words(), activity.tokens(0)), (1, 2, 2));
        assert_eq!(activity.row(0, 0), [1, 1 << 5, 0b110, 0]);
        assert_eq!(activity.row(0, 1), [1 << 3, 1, 0b110_0000, 0]);
        assert_eq!(activity.row(0, 2), activity.row(0, 0));
    }
}
