//! Paged blocks. A freed block is handed out again first (last in, first out) and keeps its content until it is overwritten, as GPU memory does.

use crate::model::KvRows;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Never written.
    Empty,
    /// Keys and values of a forward pass.
    Tokens,
    /// The mark of the recorded request that it was filled for.
    Recorded(u64),
}

struct Block {
    content: Content,
    /// `[token][layer][keys, values]`, allocated with the first forward pass that writes here.
    rows: Vec<f32>,
}

/// All blocks of a worker. Block 0 is never handed out, as in vLLM.
pub struct BlockPool {
    blocks: Vec<Block>,
    free: Vec<u32>,
    block_size: usize,
    token_width: usize,
    kv_width: usize,
}

impl BlockPool {
    /// `count` blocks of `block_size` tokens; a token takes `token_width` floats in all, `kv_width` per layer's keys.
    pub fn new(count: usize, block_size: usize, token_width: usize, kv_width: usize) -> Self {
        let blocks = (0..=count)
            .map(|_| Block {
                content: Content::Empty,
                rows: Vec::new(),
            })
            .collect();
        Self {
            blocks,
            free: (1..=count as u32).rev().collect(),
            block_size,
            token_width,
            kv_width,
        }
    }

    /// Tokens per block.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    /// Floats per block.
    pub fn block_width(&self) -> usize {
        self.block_size * self.token_width
    }

    /// Blocks in all.
    pub fn total(&self) -> usize {
        self.blocks.len() - 1
    }

    /// Blocks that nobody holds.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Blocks that so many tokens need.
    pub fn needed(&self, tokens: usize) -> usize {
        tokens.div_ceil(self.block_size)
    }

    /// Takes `count` blocks, or none if there are not enough.
    pub fn take(&mut self, count: usize) -> Option<Vec<u32>> {
        let keep = self.free.len().checked_sub(count)?;
        let mut taken = self.free.split_off(keep);
        taken.reverse();
        Some(taken)
    }

    /// Gives blocks back.
    pub fn give_back(&mut self, ids: Vec<u32>) {
        self.free.extend(ids.into_iter().rev());
    }

    /// What a block holds; `Empty` for an id that does not exist.
    pub fn content(&self, id: u32) -> Content {
        self.blocks.get(id as usize).map_or(Content::Empty, |b| b.content)
    }

    /// The floats of a block, if a forward pass or pull wrote it.
    pub fn rows(&self, id: u32) -> Option<&[f32]> {
        self.blocks
            .get(id as usize)
            .filter(|b| b.content == Content::Tokens)
            .map(|b| b.rows.as_slice())
    }

    /// Marks blocks as filled for a recorded request.
    pub fn mark(&mut self, ids: &[u32], mark: u64) {
        for id in ids {
            if let Some(block) = self.blocks.get_mut(*id as usize) {
                block.content = Content::Recorded(mark);
            }
        }
    }

    /// Overwrites a whole block.
    pub fn fill(&mut self, id: u32, rows: &[f32]) {
        let width = self.block_width();
        if let Some(block) = self.blocks.get_mut(id as usize) {
            block.rows.resize(width, 0.0);
            let n = rows.len().min(width);
            block.rows[..n].copy_from_slice(&rows[..n]);
            block.content = Content::Tokens;
        }
    }

    /// The cache of one request, as the forward pass sees it.
    pub fn paged<'p>(&'p mut self, table: &'p [u32]) -> Paged<'p> {
        Paged { pool: self, table }
    }
}

/// A request's rows, found through its block table.
pub struct Paged<'p> {
    pool: &'p mut BlockPool,
    table: &'p [u32],
}

impl Paged<'_> {
    fn place(&self, layer: usize, position: usize) -> (usize, usize) {
        let block = self.table[position / self.pool.block_size] as usize;
        let offset = position % self.pool.block_size * self.pool.token_width + layer * 2 * self.pool.kv_width;
        (block, offset)
    }
}

impl KvRows for Paged<'_> {
    fn put(&mut self, layer: usize, position: usize, keys: &[f32], values: &[f32]) {
        let (block, at) = self.place(layer, position);
        let (width, size) = (self.pool.kv_width, self.pool.block_width());
        let block = &mut self.pool.blocks[block];
        if block.content != Content::Tokens {
            block.content = Content::Tokens;
            block.rows.resize(size, 0.0);
        }
        block.rows[at..at + width].copy_from_slice(keys);
        block.rows[at + width..at + 2 * width].copy_from_slice(values);
    }

    fn keys(&self, layer: usize, position: usize) -> &[f32] {
        let (block, at) = self.place(layer, position);
        &self.pool.blocks[block].rows[at..at + self.pool.kv_width]
    }

    fn values(&self, layer: usize, position: usize) -> &[f32] {
        let (block, at) = self.place(layer, position);
        &self.pool.blocks[block].rows[at + self.pool.kv_width..at + 2 * self.pool.kv_width]
    }
}
