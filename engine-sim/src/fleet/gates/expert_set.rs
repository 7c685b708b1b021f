//! The distinct experts of one decode step, per layer.

use coterie_locality::Geometry;

/// A set of experts for each layer, one bit each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpertSet {
    /// 64-bit words per layer.
    width: usize,
    words: Vec<u64>,
}

impl ExpertSet {
    /// Empty sets for a model's layers.
    pub fn new(geometry: &Geometry) -> Self {
        let width = geometry.experts.div_ceil(64);
        Self {
            width,
            words: vec![0; width * geometry.layers],
        }
    }

    /// Empties all layers, keeping the memory.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Adds one expert; ids outside the model are ignored.
    pub fn insert(&mut self, layer: usize, expert: usize) {
        if expert < self.width * 64
            && let Some(word) = self.words.get_mut(layer * self.width + expert / 64)
        {
            *word |= 1 << (expert % 64);
        }
    }

    /// Whether an expert is in a layer's set.
    pub fn contains(&self, layer: usize, expert: usize) -> bool {
        expert < self.width * 64
            && self
                .words
                .get(layer * self.width + expert / 64)
                .is_some_and(|word| word >> (expert % 64) & 1 == 1)
    }

    /// Adds all experts of another set of the same model.
    pub fn union(&mut self, other: &Self) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// Distinct experts, summed over the layers.
    pub fn total(&self) -> u32 {
        self.words.iter().map(|w| w.count_ones()).sum()
    }

    /// Distinct experts of one layer.
    pub fn in_layer(&self, layer: usize) -> u32 {
        self.layer_words(layer).iter().map(|w| w.count_ones()).sum()
    }

    /// Bits of one layer, expert 0 in the lowest bit of the first word; empty when the layer does not exist.
    pub fn layer_words(&self, layer: usize) -> &[u64] {
        let at = layer * self.width;
        self.words.get(at..at + self.width).unwrap_or(&[])
    }

    /// All layers' bits, layer after layer, each in the same number of words.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// One token's ids `[layers, top_k]`; callers checked the ids against the geometry.
    pub(super) fn insert_token<T: Copy + Into<usize>>(&mut self, ids: &[T], top_k: usize) {
        for (layer, ids) in self.words.chunks_exact_mut(self.width).zip(ids.chunks_exact(top_k)) {
            for id in ids {
                let id: usize = (*id).into();
                layer[id / 64] |= 1 << (id % 64);
            }
        }
    }
}
