//! Cutting an encoded table into pieces that fit a ConfigMap, and its digest.

use sha2::{Digest, Sha256};

use super::{MAX_TABLE_BYTES, TableError};

/// Default size of a piece: with its metadata it stays below the 1 MiB that the API server accepts for a ConfigMap.
pub const CHUNK_BYTES: usize = 900 * 1024;

/// `sha256:` and 64 hex digits of the bytes.
pub fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let hash = Sha256::digest(bytes);
    let mut text = String::with_capacity(71);
    text.push_str("sha256:");
    for byte in hash {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Pieces of at most `max` bytes, in order; one empty piece never occurs. `max` 0 is taken as 1.
pub fn chunk(bytes: &[u8], max: usize) -> Vec<&[u8]> {
    bytes.chunks(max.max(1)).collect()
}

/// Puts pieces together again and checks size and digest.
pub fn join<C: AsRef<[u8]>>(chunks: &[C], expected_digest: &str) -> Result<Vec<u8>, TableError> {
    let total = chunks
        .iter()
        .fold(0u64, |sum, c| sum.saturating_add(c.as_ref().len() as u64));
    if total > MAX_TABLE_BYTES {
        return Err(TableError::TooLarge {
            what: "joined chunks",
            got: total,
            limit: MAX_TABLE_BYTES,
        });
    }
    let bytes: Vec<u8> = chunks.iter().flat_map(|c| c.as_ref().iter().copied()).collect();
    let got = digest(&bytes);
    if got == expected_digest {
        Ok(bytes)
    } else {
        Err(TableError::Digest {
            got,
            expected: expected_digest.into(),
        })
    }
}
