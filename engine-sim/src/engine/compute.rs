//! One sequence's work: prompt tokens in, one token out, by the forward pass or from the recording.

use std::sync::Arc;

use super::output::TextStream;
use super::request::{ExpertRows, KvIntent, Submission};
use crate::kv::{BlockPool, Blocks, Content};
use crate::model::{Model, Scratch, TokenLogprobs, choose, logprobs};
use crate::recording::{Continuation, Script};
use crate::tokenizer::TextCodec;

/// What an engine answers from.
#[derive(Clone)]
pub struct Assets {
    /// The model.
    pub model: Arc<Model>,
    /// Its tokenizer.
    pub codec: Arc<TextCodec>,
    /// Recorded or made-up requests, if any.
    pub script: Option<Script>,
}

impl Assets {
    /// Layers and experts per token of the choices that answers carry.
    pub fn shape(&self) -> (usize, usize) {
        let config = self.model.config();
        let own = (config.num_hidden_layers, config.num_experts_per_tok);
        self.script.as_ref().map_or(own, Script::shape)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// KV is on its way.
    Fetching,
    /// Prompt tokens from `computed` on are to be run.
    Prefill,
    /// One token per step.
    Decode,
}

/// A sequence that holds blocks.
pub(super) struct Job {
    pub(super) sub: Box<Submission>,
    pub(super) phase: Phase,
    pub(super) table: Vec<u32>,
    /// Prompt positions whose KV is here.
    pub(super) computed: usize,
    pub(super) generated: Vec<u32>,
    pub(super) text: TextStream,
    /// Most tokens it can generate.
    pub(super) budget: usize,
    /// Captured expert choices, `[tokens run, layers, top_k]`; kept only with capture on.
    rows: Vec<u8>,
    /// Choices at the token that ran last, `[layers, top_k]`.
    pub(super) row: Vec<u8>,
    pub(super) times: Times,
}

/// Moments of a sequence's life on the engine's clock, in seconds.
#[derive(Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) admitted: f64,
    pub(super) first_token: f64,
    pub(super) last_token: f64,
}

pub(super) struct Produced {
    pub(super) id: u32,
    pub(super) logprobs: Option<TokenLogprobs>,
}

/// The engine thread's tools.
pub(super) struct Worker {
    pub(super) assets: Assets,
    pub(super) pool: BlockPool,
    pub(super) capture: bool,
    scratch: Scratch,
}

impl Worker {
    pub(super) fn new(assets: Assets, pool: BlockPool, capture: bool) -> Self {
        let scratch = assets.model.scratch();
        Self {
            assets,
            pool,
            capture,
            scratch,
        }
    }

    /// A job with its blocks, or the submission back if there are not enough.
    pub(super) fn admit(&mut self, sub: Box<Submission>, now: f64) -> Result<Job, Box<Submission>> {
        let budget = self.budget(&sub);
        let needed = self.pool.needed(sub.prompt.len() + budget - 1);
        let Some(table) = self.pool.take(needed) else {
            return Err(sub);
        };
        if let Some(mark) = self.mark(sub.recorded) {
            self.pool.mark(&table, mark);
        }
        let phase = if matches!(sub.kv, KvIntent::Pull(_)) {
            Phase::Fetching
        } else {
            Phase::Prefill
        };
        Ok(Job {
            phase,
            table,
            computed: 0,
            generated: Vec::new(),
            text: TextStream::default(),
            budget,
            rows: Vec::new(),
            row: vec![0; self.row_width()],
            times: Times {
                admitted: now,
                ..Times::default()
            },
            sub,
        })
    }

    fn row_width(&self) -> usize {
        let (layers, top_k) = self.assets.shape();
        layers * top_k
    }

    /// Tokens the sequence can have: what was asked for, or what the script still holds (at least one).
    fn budget(&self, sub: &Submission) -> usize {
        match (sub.recorded, &self.assets.script) {
            (Some(at), Some(script)) => sub.limits.max_tokens.min(script.left(at)).max(1),
            _ => sub.limits.max_tokens,
        }
    }

    fn mark(&self, recorded: Option<Continuation>) -> Option<u64> {
        Some(self.assets.script.as_ref()?.mark(recorded?))
    }

    /// Runs up to `most` prompt tokens; returns how many, and the first token once the prompt is through.
    pub(super) fn prefill(&mut self, job: &mut Job, most: usize) -> (usize, Option<Produced>) {
        let end = job.sub.prompt.len().min(job.computed + most);
        let ran = end - job.computed;
        if let (Some(at), Some(script)) = (job.sub.recorded, &self.assets.script) {
            job.computed = end;
            if end < job.sub.prompt.len() {
                return (ran, None);
            }
            let rows = script.prompt_rows(at, job.sub.prompt.len());
            let width = job.row.len();
            job.row.copy_from_slice(&rows[rows.len() - width..]);
            if self.capture {
                job.rows = rows;
            }
            return (ran, Some(self.produce(job)));
        }
        for position in job.computed..end {
            let token = job.sub.prompt[position];
            let mut kv = self.pool.paged(&job.table);
            self.assets
                .model
                .step(&mut self.scratch, token, position, &mut kv, &mut job.row);
            if self.capture {
                job.rows.extend_from_slice(&job.row);
            }
        }
        job.computed = end;
        let produced = (end == job.sub.prompt.len()).then(|| self.produce(job));
        (ran, produced)
    }

    /// One decode step: runs the last token (the prompt's last one if the KV was pulled) and chooses the next.
    pub(super) fn decode(&mut self, job: &mut Job) -> Produced {
        if let (Some(at), Some(script)) = (job.sub.recorded, &self.assets.script) {
            let step = (at.offset + job.generated.len()).checked_sub(1);
            script.row(at, job.sub.prompt.len(), step, &mut job.row);
        } else {
            let position = job.sub.prompt.len() + job.generated.len() - 1;
            let token = job
                .generated
                .last()
                .or(job.sub.prompt.last())
                .copied()
                .unwrap_or_default();
            let mut kv = self.pool.paged(&job.table);
            self.assets
                .model
                .step(&mut self.scratch, token, position, &mut kv, &mut job.row);
        }
        if self.capture && !job.rows.is_empty() {
            job.rows.extend_from_slice(&job.row);
        }
        self.produce(job)
    }

    fn produce(&mut self, job: &Job) -> Produced {
        let index = job.generated.len();
        if let (Some(at), Some(script)) = (job.sub.recorded, &self.assets.script) {
            let id = script.token(at, index);
            return Produced { id, logprobs: None };
        }
        let eos = [self.assets.model.config().eos_token_id];
        let logits = self.assets.model.logits(&mut self.scratch);
        let id = if index < job.sub.limits.min_tokens {
            let banned: Vec<u32> = eos.iter().chain(&job.sub.limits.stop_token_ids).copied().collect();
            choose(logits, &job.sub.sampling, index, &banned)
        } else {
            choose(logits, &job.sub.sampling, index, &[])
        };
        Produced {
            id,
            logprobs: job.sub.logprobs.map(|top| logprobs(logits, id, top)),
        }
    }

    /// Puts pulled blocks into a job's own. False if they hold another request's KV; the job then goes on with what it got, as a real engine would.
    pub(super) fn receive(&mut self, job: &mut Job, pulled: &Blocks) -> Result<bool, String> {
        let needed = self.pool.needed(job.sub.prompt.len());
        if pulled.blocks.len() < needed {
            return Err(format!(
                "the hand-off has {} blocks, the prompt needs {needed}",
                pulled.blocks.len()
            ));
        }
        let contents = &pulled.blocks[..needed];
        job.computed = job.sub.prompt.len();
        job.phase = Phase::Decode;
        if let (Some(at), Some(mark), Some(script)) =
            (job.sub.recorded, self.mark(job.sub.recorded), &self.assets.script)
        {
            let Some((stranger, _)) = contents.iter().find(|(content, _)| *content != Content::Recorded(mark)) else {
                return Ok(true);
            };
            let other = match stranger {
                Content::Recorded(mark) => Some(*mark),
                _ => None,
            };
            let request = script.marked(other, at);
            job.sub.recorded = Some(Continuation {
                request,
                offset: at.offset,
            });
            return Ok(false);
        }
        let mut ours = true;
        for (id, (content, rows)) in job.table.iter().zip(contents) {
            match content {
                Content::Tokens => self.pool.fill(*id, rows),
                other => {
                    ours = false;
                    let rows = noise(*other, self.pool.block_width());
                    self.pool.fill(*id, &rows);
                }
            }
        }
        Ok(ours)
    }

    /// The captured rows, if capture is on and the prompt ran here.
    pub(super) fn take_rows(&self, job: &mut Job) -> Option<ExpertRows> {
        let (layers, top_k) = self.assets.shape();
        (self.capture && !job.rows.is_empty()).then(|| ExpertRows {
            layers,
            top_k,
            data: std::mem::take(&mut job.rows),
        })
    }
}

/// What a forward pass reads from blocks that no forward pass wrote: numbers, but no meaning.
fn noise(content: Content, width: usize) -> Vec<f32> {
    let mut state = match content {
        Content::Recorded(mark) => mark | 1,
        _ => 0x9E37_79B9_7F4A_7C15,
    };
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..width).map(|_| next()).collect()
}
