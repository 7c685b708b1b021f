//! The engine loop: take orders, free what expired, admit, prefill, decode, deliver at the step's deadline.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use super::clock::Clock;
use super::compute::{Job, Phase, Produced, Worker};
use super::handle::{Command, EngineOptions, EngineSnapshot};
use super::pace::Pacer;
use super::request::{Event, Finish, FinishReason, KvIntent, StopReason, Submission, Token};
use super::stats::{EngineMetrics, SimStats};
use crate::kv::{Blocks, HandOff, Pins, PullClient, PullError, export};

/// Longest wait without work, so that clients that went away while waiting are noticed.
const IDLE: Duration = Duration::from_millis(500);

pub(super) struct Core {
    worker: Worker,
    options: EngineOptions,
    clock: Arc<dyn Clock>,
    inbox: Receiver<Command>,
    commands: Sender<Command>,
    pulls: PullClient,
    runtime: tokio::runtime::Handle,
    waiting: VecDeque<Submission>,
    arrived: Vec<(String, Result<Blocks, PullError>)>,
    jobs: Vec<Job>,
    pins: Pins,
    pacer: Pacer,
    sim: SimStats,
    metrics: EngineMetrics,
    stopped: bool,
}

impl Core {
    pub(super) fn new(
        worker: Worker,
        options: EngineOptions,
        clock: Arc<dyn Clock>,
        inbox: Receiver<Command>,
        commands: Sender<Command>,
        pulls: PullClient,
        runtime: tokio::runtime::Handle,
    ) -> Self {
        let layers = worker.assets.model.config().num_hidden_layers;
        Self {
            worker,
            options,
            clock,
            inbox,
            commands,
            pulls,
            runtime,
            waiting: VecDeque::new(),
            arrived: Vec::new(),
            jobs: Vec::new(),
            pins: Pins::default(),
            pacer: Pacer::default(),
            sim: SimStats::new(layers),
            metrics: EngineMetrics::default(),
            stopped: false,
        }
    }

    pub(super) fn run(mut self) {
        while !self.stopped {
            self.expire_leases();
            loop {
                match self.inbox.try_recv() {
                    Ok(command) => self.obey(command),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            self.drop_abandoned();
            self.receive_kv();
            self.admit();
            let prefilled = self.prefill_step();
            let decoded = self.decode_step();
            if !prefilled && !decoded && !self.stopped {
                self.pacer.idle();
                let lease = self.pins.next_expiry().map(|at| at.saturating_sub(self.clock.now()));
                if let Ok(command) = self.inbox.recv_timeout(lease.unwrap_or(IDLE).min(IDLE)) {
                    self.expire_leases();
                    self.obey(command);
                }
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Submit(submission) => self.waiting.push_back(*submission),
            Command::Pulled(id, result, seconds) => {
                self.metrics.xfer_time.observe(seconds);
                if let Ok(blocks) = &result {
                    let bytes: usize = blocks.blocks.iter().map(|(_, rows)| rows.len() * 4).sum();
                    self.metrics.xfer_bytes.observe(bytes as f64);
                }
                self.arrived.push((id, result));
            }
            Command::Read(ids, reply) => {
                let _ = reply.send(export(&self.worker.pool, &ids));
            }
            Command::Release(request) => match self.pins.release(&request) {
                Some(blocks) => self.worker.pool.give_back(blocks),
                None => self.metrics.notifications_after_expiry += 1,
            },
            Command::Reject(hand_off) => self.notify(hand_off, "rejected"),
            Command::NotifyFailed => self.metrics.failed_notifications += 1,
            Command::Snapshot(reply) => {
                let _ = reply.send(Box::new(self.snapshot()));
            }
            Command::Reset(reply) => {
                self.sim = SimStats::new(self.sim.distinct_sum.len());
                let _ = reply.send(());
            }
            Command::Stop => self.stopped = true,
        }
    }

    fn snapshot(&self) -> EngineSnapshot {
        let fetching = self.jobs.iter().filter(|job| job.phase == Phase::Fetching).count();
        EngineSnapshot {
            running: self.jobs.len() - fetching,
            waiting: self.waiting.len(),
            fetching,
            blocks_total: self.worker.pool.total(),
            blocks_free: self.worker.pool.free(),
            blocks_pinned: self.pins.blocks(),
            hand_offs: self.pins.len(),
            sim: self.sim.clone(),
            metrics: self.metrics.clone(),
        }
    }

    fn expire_leases(&mut self) {
        for (request, blocks) in self.pins.expire(self.clock.now()) {
            tracing::warn!(
                request,
                blocks = blocks.len(),
                "no decode worker pulled the KV in time: its blocks are free"
            );
            self.worker.pool.give_back(blocks);
            self.sim.lease_expiries += 1;
            self.metrics.kv_expired_reqs += 1;
        }
    }

    fn drop_abandoned(&mut self) {
        let mut gone = Vec::new();
        self.waiting.retain(|sub| {
            let closed = sub.events.is_closed();
            if closed {
                gone.push(sub.kv.clone());
            }
            !closed
        });
        for kv in gone {
            self.count_abort();
            if let KvIntent::Pull(from) = kv {
                self.notify(from, "rejected");
            }
        }
        for at in (0..self.jobs.len())
            .rev()
            .filter(|at| self.jobs[*at].sub.events.is_closed())
            .collect::<Vec<_>>()
        {
            let job = self.jobs.remove(at);
            self.count_abort();
            self.worker.pool.give_back(job.table);
        }
    }

    fn count_abort(&mut self) {
        self.sim.aborted += 1;
        self.metrics.success_abort += 1;
    }

    fn receive_kv(&mut self) {
        for (id, result) in std::mem::take(&mut self.arrived) {
            let Some(at) = self.jobs.iter().position(|job| job.sub.id == id) else {
                continue;
            };
            let job = &mut self.jobs[at];
            match result
                .map_err(|e| e.to_string())
                .and_then(|blocks| self.worker.receive(job, &blocks))
            {
                Ok(ours) => {
                    if !ours {
                        tracing::warn!(request = id, "the pulled blocks hold another request's KV");
                        self.sim.foreign_pulls += 1;
                    }
                    self.metrics.prompt_tokens_external += job.sub.prompt.len() as u64;
                }
                Err(reason) => {
                    tracing::warn!(request = id, reason, "KV load failed");
                    self.metrics.failed_transfers += 1;
                    self.metrics.success_error += 1;
                    self.sim.failed += 1;
                    let job = self.jobs.remove(at);
                    let _ = job.sub.events.send(Event::Failed(format!("KV load failed: {reason}")));
                    self.worker.pool.give_back(job.table);
                }
            }
        }
    }

    fn admit(&mut self) {
        while self.jobs.len() < self.options.max_num_seqs {
            let Some(sub) = self.waiting.pop_front() else { return };
            match self.worker.admit(sub, self.clock.now().as_secs_f64()) {
                Ok(job) => {
                    self.metrics
                        .queue
                        .observe(job.times.admitted - job.sub.arrived.as_secs_f64());
                    if let KvIntent::Pull(from) = &job.sub.kv {
                        self.pull(job.sub.id.clone(), from.clone());
                    }
                    self.jobs.push(job);
                }
                Err(sub) => {
                    self.waiting.push_front(sub);
                    return;
                }
            }
        }
    }

    fn pull(&self, id: String, from: HandOff) {
        let (pulls, commands, clock) = (self.pulls.clone(), self.commands.clone(), Arc::clone(&self.clock));
        self.runtime.spawn(async move {
            let start = clock.now();
            let result = pulls.read(&from).await;
            let read = result.is_ok();
            let _ = commands.send(Command::Pulled(
                id,
                result,
                (clock.now().saturating_sub(start)).as_secs_f64(),
            ));
            if read && let Err(error) = pulls.notify(&from, "pulled").await {
                tracing::warn!(%error, "the prefill worker was not told that its KV is pulled");
                let _ = commands.send(Command::NotifyFailed);
            }
        });
    }

    fn notify(&self, to: HandOff, outcome: &'static str) {
        let (pulls, commands) = (self.pulls.clone(), self.commands.clone());
        self.runtime.spawn(async move {
            if let Err(error) = pulls.notify(&to, outcome).await {
                tracing::warn!(%error, outcome, "the prefill worker was not told what became of its KV");
                let _ = commands.send(Command::NotifyFailed);
            }
        });
    }

    fn prefill_step(&mut self) -> bool {
        let start = self.pacer.start(self.clock.now());
        let mut left = self.options.max_num_batched_tokens;
        let mut produced = Vec::new();
        for at in 0..self.jobs.len() {
            if self.jobs[at].phase != Phase::Prefill || left == 0 {
                continue;
            }
            let (ran, token) = self.worker.prefill(&mut self.jobs[at], left);
            left -= ran;
            if let Some(token) = token {
                produced.push((at, token));
            }
        }
        let tokens = self.options.max_num_batched_tokens - left;
        if tokens == 0 {
            return false;
        }
        let (deadline, overrun) = self
            .pacer
            .end(start, self.options.prefill_law.time(tokens), self.clock.now());
        self.wait_until(deadline);
        self.sim.prefill_steps += 1;
        self.sim.prefill_tokens += tokens as u64;
        self.sim.prefill_overrun_steps += u64::from(overrun);
        self.metrics.prompt_tokens_local += tokens as u64;
        self.metrics.iteration_tokens.observe(tokens as f64);
        for (at, _) in &produced {
            self.jobs[*at].phase = Phase::Decode;
        }
        self.deliver(produced);
        true
    }

    fn decode_step(&mut self) -> bool {
        let began = self.clock.now();
        let start = self.pacer.start(began);
        let layers = self.sim.distinct_sum.len();
        let mut seen = vec![[false; 256]; layers];
        let mut produced = Vec::new();
        for at in 0..self.jobs.len() {
            let job = &mut self.jobs[at];
            if job.phase != Phase::Decode {
                continue;
            }
            let token = self.worker.decode(job);
            for (layer, experts) in job.row.chunks_exact(job.row.len() / layers).enumerate() {
                experts.iter().for_each(|e| seen[layer][*e as usize] = true);
            }
            produced.push((at, token));
        }
        if produced.is_empty() {
            return false;
        }
        let distinct: Vec<usize> = seen
            .iter()
            .map(|layer| layer.iter().filter(|used| **used).count())
            .collect();
        let paced = self.options.step_law.time(distinct.iter().sum(), produced.len());
        let computed = self.clock.now();
        let (deadline, overrun) = self.pacer.end(start, paced, computed);
        self.wait_until(deadline);
        self.sim.steps += 1;
        self.sim.batch_sum += produced.len() as u64;
        self.sim
            .distinct_sum
            .iter_mut()
            .zip(&distinct)
            .for_each(|(sum, n)| *sum += *n as u64);
        self.sim.overrun_steps += u64::from(overrun);
        self.sim.step_ms.observe(ms(self.clock.now().saturating_sub(start)));
        self.sim.paced_ms += ms(paced);
        self.sim.computing_ms += ms(computed.saturating_sub(began));
        self.metrics.iteration_tokens.observe(produced.len() as f64);
        self.deliver(produced);
        true
    }

    /// Obeys orders until `deadline`: the thread sleeps in between.
    fn wait_until(&mut self, deadline: Duration) {
        while !self.stopped {
            let left = deadline.saturating_sub(self.clock.now());
            if left.is_zero() {
                return;
            }
            if let Ok(command) = self.inbox.recv_timeout(left) {
                self.obey(command);
            }
        }
    }

    fn deliver(&mut self, produced: Vec<(usize, Produced)>) {
        let now = self.clock.now().as_secs_f64();
        let mut ended = Vec::new();
        for (at, token) in produced {
            let job = &mut self.jobs[at];
            job.generated.push(token.id);
            self.metrics.generation_tokens += 1;
            if job.generated.len() == 1 {
                job.times.first_token = now;
                self.metrics.ttft.observe(now - job.sub.arrived.as_secs_f64());
            } else {
                self.metrics.inter_token.observe(now - job.times.last_token);
            }
            job.times.last_token = now;
            let (text, end) = Self::judge(&self.worker, job, token.id);
            let finish = end.map(|(reason, stop)| {
                ended.push((at, reason));
                (reason, stop)
            });
            let finish = finish.map(|(reason, stop)| self.finish(at, reason, stop));
            let event = Token {
                id: token.id,
                text,
                logprobs: token.logprobs,
                finish,
            };
            let _ = self.jobs[at].sub.events.send(Event::Token(event));
        }
        for (at, reason) in ended.into_iter().rev() {
            let job = self.jobs.remove(at);
            self.count_finished(&job, reason);
        }
    }

    /// The text that a token adds, and whether the sequence ends with it.
    fn judge(worker: &Worker, job: &mut Job, id: u32) -> (String, Option<(FinishReason, Option<StopReason>)>) {
        let limits = &job.sub.limits;
        let may_stop = job.generated.len() >= limits.min_tokens;
        let eos = id == worker.assets.model.config().eos_token_id && !limits.ignore_eos && job.sub.recorded.is_none();
        let by_token = may_stop && limits.stop_token_ids.contains(&id);
        let full = job.generated.len() >= job.budget;
        let last = full || (may_stop && eos) || by_token;
        let bytes = if by_token && !limits.include_stop {
            &[][..]
        } else {
            worker.assets.codec.piece(id)
        };
        let piece = job.text.push(bytes, &limits.stop, limits.include_stop, may_stop, last);
        let end = if let Some(found) = piece.stopped_by {
            Some((
                FinishReason::Stop,
                limits.stop.get(found).cloned().map(StopReason::Text),
            ))
        } else if may_stop && eos {
            Some((FinishReason::Stop, None))
        } else if by_token {
            Some((FinishReason::Stop, Some(StopReason::Token(id))))
        } else {
            full.then_some((FinishReason::Length, None))
        };
        (piece.text, end)
    }

    /// Ends a sequence: its blocks are pinned for the decode worker, or free.
    fn finish(&mut self, at: usize, reason: FinishReason, stop: Option<StopReason>) -> Box<Finish> {
        let job = &mut self.jobs[at];
        let experts = self.worker.take_rows(job);
        let mut table = std::mem::take(&mut job.table);
        let mut hand_off = None;
        if let (KvIntent::HandOff, Some((host, port))) = (&job.sub.kv, &self.options.side_channel) {
            let tokens = job.sub.prompt.len() + job.generated.len() - 1;
            let spare = table.split_off(self.worker.pool.needed(tokens).min(table.len()));
            self.worker.pool.give_back(spare);
            hand_off = Some(HandOff {
                do_remote_prefill: true,
                do_remote_decode: false,
                remote_block_ids: vec![table.clone()],
                remote_engine_id: self.options.engine_id.clone(),
                remote_request_id: job.sub.id.clone(),
                remote_host: host.clone(),
                remote_port: *port,
                tp_size: 1,
                dcp_size: 1,
                pp_size: 1,
                remote_num_tokens: tokens,
                remote_blocks_expiry_time: None,
                transfer_mode: "pull".to_owned(),
            });
            self.pins
                .hold(job.sub.id.clone(), table, self.clock.now() + self.options.lease);
        } else {
            self.worker.pool.give_back(table);
        }
        Box::new(Finish {
            reason,
            stop,
            experts,
            hand_off,
        })
    }

    fn count_finished(&mut self, job: &Job, reason: FinishReason) {
        let (times, generated) = (job.times, job.generated.len() as f64);
        self.sim.finished += 1;
        self.sim.recorded += u64::from(job.sub.recorded.is_some());
        match reason {
            FinishReason::Stop => self.metrics.success_stop += 1,
            FinishReason::Length => self.metrics.success_length += 1,
        }
        let m = &mut self.metrics;
        let prompt = job.sub.prompt.len();
        m.prompt_tokens += prompt as u64;
        m.prefix_queries += prompt as u64;
        m.e2e.observe(times.last_token - job.sub.arrived.as_secs_f64());
        m.inference.observe(times.last_token - times.admitted);
        m.prefill.observe(times.first_token - times.admitted);
        m.decode.observe(times.last_token - times.first_token);
        let gaps = (generated - 1.0).max(1.0);
        m.per_output_token
            .observe((times.last_token - times.first_token) / gaps);
        m.request_prompt_tokens.observe(prompt as f64);
        m.request_generation_tokens.observe(generated);
        m.request_max_tokens.observe(job.sub.limits.max_tokens as f64);
        let local = if matches!(job.sub.kv, KvIntent::Pull(_)) {
            0
        } else {
            prompt
        };
        m.prefill_computed_tokens.observe(local as f64);
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
