//! The engine loop: take orders, free what expired, admit, prefill, decode, deliver at the step's deadline.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use super::clock::Clock;
use super::compute::{Job, Phase, Worker};
use super::handle::{Command, EngineOptions, EngineSnapshot};
use super::pace::Pacer;
use super::request::{Event, KvIntent, Submission};
use super::stats::{EngineMetrics, SimStats};
use crate::kv::{Blocks, HandOff, Pins, PullClient, PullError, export};

/// Longest wait without work, so that clients that went away while waiting are noticed.
const IDLE: Duration = Duration::from_millis(500);

pub(super) struct Core {
    pub(super) worker: Worker,
    pub(super) options: EngineOptions,
    pub(super) clock: Arc<dyn Clock>,
    inbox: Receiver<Command>,
    commands: Sender<Command>,
    pulls: PullClient,
    runtime: tokio::runtime::Handle,
    waiting: VecDeque<Box<Submission>>,
    arrived: Vec<(String, Result<Blocks, PullError>)>,
    pub(super) jobs: Vec<Job>,
    pub(super) pins: Pins,
    pacer: Pacer,
    pub(super) sim: SimStats,
    pub(super) metrics: EngineMetrics,
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
        let (layers, _) = worker.assets.shape();
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
                if let Some(command) = self.next_command(lease.unwrap_or(IDLE).min(IDLE)) {
                    self.expire_leases();
                    self.obey(command);
                }
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Submit(submission) => self.waiting.push_back(submission),
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
        let takes = self.options.prefill_law.time(tokens);
        let (deadline, overrun) = if takes.is_zero() && self.options.step_law.time_scale > 0.0 {
            // The late wake-up before it must not delay the decode step after it.
            self.pacer.keep(start);
            (start, false)
        } else {
            self.pacer.end(start, takes, self.clock.now())
        };
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
                for expert in experts {
                    seen[layer][*expert as usize] = true;
                }
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
            if let Some(command) = self.next_command(left) {
                self.obey(command);
            }
        }
    }

    /// The next order; waits for one at most `left`.
    fn next_command(&self, left: Duration) -> Option<Command> {
        if self.clock.skip(left) {
            return self.inbox.try_recv().ok();
        }
        self.inbox.recv_timeout(left).ok()
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
