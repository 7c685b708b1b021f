//! Texts whose words tell their domain, as far as real words do.

use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Words of each domain, and words that all domains share.
const WORDS: usize = 1500;
/// Share of words that every domain uses.
const COMMON: f64 = 0.3;

/// Words of all domains; the last list is the shared one.
pub(super) struct Vocabulary(Vec<Vec<String>>);

impl Vocabulary {
    /// The same words for the same seed.
    pub(super) fn new(domains: usize, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x7465_7874);
        Self((0..=domains).map(|_| words(&mut rng)).collect())
    }

    /// Text of exactly this many bytes.
    pub(super) fn text(&self, domain: usize, bytes: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<u8> {
        let (own, common) = (self.0.get(domain), self.0.last());
        let mut text = Vec::with_capacity(bytes + 32);
        while text.len() < bytes {
            let list = if rng.gen_bool(COMMON) { common } else { own };
            // The first words are the frequent ones: rank ~ 1 / u is Zipf's law.
            let rank = (1.0 / rng.gen_range(1.0 / WORDS as f64..1.0)) as usize - 1;
            let Some(word) = list.and_then(|words| words.get(rank)) else {
                continue;
            };
            text.extend_from_slice(word.as_bytes());
            text.extend_from_slice(if rng.gen_bool(0.08) { b".\n" } else { b" " });
        }
        text.truncate(bytes);
        text
    }
}

/// Words of two to four syllables from a few of all syllables, so that domains differ in their letters too.
fn words(rng: &mut Xoshiro256PlusPlus) -> Vec<String> {
    let mut consonants = b"bcdfghjklmnpqrstvwxyz".to_vec();
    consonants.shuffle(rng);
    let syllables: Vec<String> = consonants
        .iter()
        .take(10)
        .flat_map(|c| ['a', 'e', 'i', 'o', 'u'].map(|v| format!("{}{v}", char::from(*c))))
        .collect();
    let word = |_| {
        let length = rng.gen_range(2..=4);
        (0..length)
            .filter_map(|_| syllables.choose(rng))
            .map(String::as_str)
            .collect()
    };
    (0..WORDS).map(word).collect()
}
