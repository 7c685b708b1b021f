//! A small hash with fixed output on every machine and release, for choices that all routers must make alike. Not for secrets.

/// 64-bit FNV-1a over the parts, each closed by its length, then mixed so that all bits depend on all input.
pub(crate) fn stable_hash(parts: &[&[u8]]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut feed = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    for part in parts {
        part.iter().for_each(|b| feed(*b));
        (part.len() as u64).to_le_bytes().iter().for_each(|b| feed(*b));
    }
    mix(hash)
}

/// Finaliser of SplitMix64.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_changes_and_separates_parts() {
        assert_eq!(
            stable_hash(&[b"worker-0", &1u32.to_le_bytes()]),
            stable_hash(&[b"worker-0", &1u32.to_le_bytes()])
        );
        assert_ne!(stable_hash(&[b"ab", b"c"]), stable_hash(&[b"a", b"bc"]));
    }
}
