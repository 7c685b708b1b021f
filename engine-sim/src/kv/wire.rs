//! What travels over the side channel: a header, then each block's content.

use super::{BlockPool, Content};

const MAGIC: &[u8; 4] = b"CKV1";
const HEADER: usize = 12;
const MAX_BLOCKS: usize = 1 << 16;

/// Pulled blocks, in the order asked for.
#[derive(Debug, PartialEq)]
pub struct Blocks {
    /// Per block: what it holds and its floats (none unless `Tokens`).
    pub blocks: Vec<(Content, Vec<f32>)>,
}

/// The content of blocks, whoever holds them now.
pub fn export(pool: &BlockPool, ids: &[u32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + ids.len() * (9 + pool.block_width() * 4));
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&(ids.len() as u32).to_le_bytes());
    out.extend_from_slice(&(pool.block_width() as u32).to_le_bytes());
    for id in ids {
        match (pool.content(*id), pool.rows(*id)) {
            (Content::Recorded(mark), _) => {
                out.push(2);
                out.extend_from_slice(&mark.to_le_bytes());
            }
            (_, Some(rows)) => {
                out.push(1);
                out.extend(rows.iter().flat_map(|x| x.to_le_bytes()));
            }
            _ => out.push(0),
        }
    }
    out
}

/// Parses what [`export`] wrote. `block_width` is the reader's own: workers with other block sizes or models cannot exchange KV.
pub fn import(bytes: &[u8], block_width: usize) -> Result<Blocks, String> {
    let cut = || "the answer is cut off".to_owned();
    let rest = bytes.strip_prefix(MAGIC).ok_or("the answer is not KV blocks")?;
    let (count, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
    let (width, mut rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
    let (count, width) = (u32::from_le_bytes(*count) as usize, u32::from_le_bytes(*width) as usize);
    if width != block_width {
        return Err(format!(
            "the prefill worker's blocks hold {width} floats, ours {block_width}: give both the same model and --block-size"
        ));
    }
    if count > MAX_BLOCKS {
        return Err(format!("the answer claims {count} blocks"));
    }
    let mut blocks = Vec::new();
    for _ in 0..count {
        let (tag, after) = rest.split_first().ok_or_else(cut)?;
        rest = after;
        blocks.push(match tag {
            0 => (Content::Empty, Vec::new()),
            1 => {
                let (data, after) = rest.split_at_checked(width * 4).ok_or_else(cut)?;
                rest = after;
                (
                    Content::Tokens,
                    data.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
                )
            }
            2 => {
                let (mark, after) = rest.split_first_chunk::<8>().ok_or_else(cut)?;
                rest = after;
                (Content::Recorded(u64::from_le_bytes(*mark)), Vec::new())
            }
            other => return Err(format!("a block has the unknown kind {other}")),
        });
    }
    if rest.is_empty() {
        Ok(Blocks { blocks })
    } else {
        Err("bytes follow the last block".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_survive_the_wire_and_damage_is_noticed() {
        let mut pool = BlockPool::new(3, 2, 4, 2);
        pool.fill(1, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        pool.mark(&[2], 77);
        let bytes = export(&pool, &[1, 2, 3, 99]);
        let read = import(&bytes, 8).unwrap();
        let contents: Vec<Content> = read.blocks.iter().map(|b| b.0).collect();
        assert_eq!(
            contents,
            [Content::Tokens, Content::Recorded(77), Content::Empty, Content::Empty]
        );
        assert_eq!(read.blocks[0].1, pool.rows(1).unwrap());
        assert!(import(&bytes, 16).unwrap_err().contains("--block-size"));
        for cut in 0..bytes.len() {
            assert!(import(&bytes[..cut], 8).is_err());
        }
    }

    #[test]
    fn freed_blocks_come_back_first_and_keep_their_content() {
        let mut pool = BlockPool::new(4, 2, 4, 2);
        let first = pool.take(2).unwrap();
        assert_eq!(first, [1, 2]);
        pool.mark(&first, 5);
        assert!(pool.take(3).is_none());
        pool.give_back(first);
        assert_eq!(pool.content(1), Content::Recorded(5));
        assert_eq!(pool.take(3).unwrap(), [1, 2, 3]);
    }
}
