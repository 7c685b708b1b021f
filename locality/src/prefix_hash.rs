//! Prefill worker by prefix hash: prompts that begin alike meet the same worker's prefix cache, unless it is too busy.
//!
//! Ring as in ELDR: BLAKE2b with an 8-byte digest read big-endian, 160 points per worker at the hash of `<worker>#<v>`, the owner is the
//! first point at or after the key. Two differences: an overloaded owner passes the request on along the ring (so its prompts have one
//! second home, not any), and token ids are hashed as 4 bytes each, so that [1, 23] and [12, 3] differ.

use blake2::Blake2bVar;
use blake2::digest::{Update, VariableOutput};

const VIRTUAL_NODES: u32 = 160;
/// First byte of a token-id key: never the start of UTF-8 text, so ids and text cannot collide.
const TOKEN_TAG: u8 = 0xFF;

/// Where requests go that their owner is too busy for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The next worker on the ring that is not too busy.
    #[default]
    WalkRing,
    /// The least-loaded worker, lowest index on ties: ELDR's rule.
    LeastLoaded,
}

/// A worker for a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixChoice {
    /// The chosen worker.
    pub worker: usize,
    /// The ring's owner of the prompt's prefix; absent for an empty prompt.
    pub owner: Option<usize>,
    /// Whether the owner was too busy.
    pub spilled: bool,
}

/// A load factor that is not a number of at least 1.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("prefix hash: loadFactor is {0}, must be a finite number of at least 1")]
pub struct LoadFactorError(f64);

/// The ring over one set of workers; made anew when the set changes.
#[derive(Clone, Debug)]
pub struct PrefixRing {
    points: Vec<(u64, u32)>,
    workers: usize,
    load_factor: f64,
    overflow: Overflow,
}

/// Hash of the first `prefix_bytes` bytes of a text prompt; `None` when nothing is left to hash.
pub fn text_key(prompt: &[u8], prefix_bytes: usize) -> Option<u64> {
    let prefix = prompt.get(..prefix_bytes.min(prompt.len())).filter(|p| !p.is_empty())?;
    Some(blake2b_64(&[prefix]))
}

/// Hash of a token-id prompt: ids take 4 bytes each, the first `prefix_bytes` of them count; `None` when nothing is left to hash.
pub fn token_key(prompt: &[u32], prefix_bytes: usize) -> Option<u64> {
    let ids: Vec<u8> = prompt
        .iter()
        .take(prefix_bytes / 4)
        .flat_map(|id| id.to_le_bytes())
        .collect();
    (!ids.is_empty()).then(|| blake2b_64(&[&[TOKEN_TAG], &ids]))
}

fn blake2b_64(parts: &[&[u8]]) -> u64 {
    let mut out = [0u8; 8];
    // Eight bytes is a valid digest size and the buffer has that size: neither step can fail.
    if let Ok(mut hasher) = Blake2bVar::new(out.len()) {
        for part in parts {
            hasher.update(part);
        }
        let _ = hasher.finalize_variable(&mut out);
    }
    u64::from_be_bytes(out)
}

impl PrefixRing {
    /// Builds the ring. `load_factor` bounds a worker's load to (total + 1) / workers x factor.
    pub fn new(workers: &[impl AsRef<str>], load_factor: f64, overflow: Overflow) -> Result<Self, LoadFactorError> {
        if !load_factor.is_finite() || load_factor < 1.0 {
            return Err(LoadFactorError(load_factor));
        }
        let mut points: Vec<(u64, u32)> = workers
            .iter()
            .enumerate()
            .flat_map(|(i, w)| {
                (0..VIRTUAL_NODES).map(move |v| (blake2b_64(&[format!("{}#{v}", w.as_ref()).as_bytes()]), i as u32))
            })
            .collect();
        points.sort_unstable();
        Ok(Self {
            points,
            workers: workers.len(),
            load_factor,
            overflow,
        })
    }

    /// Workers on the ring.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The owner of a key; `None` without workers.
    pub fn owner(&self, key: u64) -> Option<usize> {
        self.points.get(self.successor(key)).map(|(_, worker)| *worker as usize)
    }

    /// The worker for a prompt of this key, given each worker's load in requests (`loads` as long as the workers; missing ones count 0).
    /// An empty prompt (no key) goes to the least-loaded worker. `None` without workers.
    pub fn choose(&self, key: Option<u64>, loads: &[f32]) -> Option<PrefixChoice> {
        let load = |w: usize| f64::from(loads.get(w).copied().unwrap_or(0.0));
        let lowest = || (0..self.workers).min_by(|a, b| load(*a).total_cmp(&load(*b)));
        let Some(key) = key else {
            return Some(PrefixChoice {
                worker: lowest()?,
                owner: None,
                spilled: false,
            });
        };
        let start = self.successor(key);
        let owner = self.points.get(start).map(|(_, w)| *w as usize)?;
        let total: f64 = (0..self.workers).map(load).sum();
        let limit = (total + 1.0) / self.workers as f64 * self.load_factor;
        if load(owner) <= limit {
            return Some(PrefixChoice {
                worker: owner,
                owner: Some(owner),
                spilled: false,
            });
        }
        let next = match self.overflow {
            Overflow::LeastLoaded => None,
            Overflow::WalkRing => {
                let (before, from) = self.points.split_at(start);
                from.iter()
                    .chain(before)
                    .map(|(_, w)| *w as usize)
                    .find(|w| load(*w) <= limit)
            }
        };
        Some(PrefixChoice {
            worker: next.or_else(lowest)?,
            owner: Some(owner),
            spilled: true,
        })
    }

    /// Index of the first point at or after the key, wrapping to the first point of all.
    fn successor(&self, key: u64) -> usize {
        let at = self.points.partition_point(|(position, _)| *position < key);
        if at == self.points.len() { 0 } else { at }
    }
}

#[cfg(test)]
#[path = "prefix_hash_tests.rs"]
mod tests;
