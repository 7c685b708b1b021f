//! Starting the engine thread and talking to it.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::oneshot;

use super::clock::Clock;
use super::compute::{Assets, Worker};
use super::core::Core;
use super::pace::{PrefillLaw, StepLaw};
use super::request::Submission;
use super::stats::{EngineMetrics, SimStats};
use crate::kv::{BlockPool, Blocks, HandOff, PullClient, PullError};

/// How an engine runs.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Identity of this process in hand-offs.
    pub engine_id: String,
    /// Whether answers carry expert choices.
    pub capture: bool,
    /// Most sequences at once.
    pub max_num_seqs: usize,
    /// Most prompt tokens in one prefill step.
    pub max_num_batched_tokens: usize,
    /// KV blocks.
    pub kv_blocks: usize,
    /// Tokens per block.
    pub block_size: usize,
    /// How long a hand-off's blocks stay pinned.
    pub lease: Duration,
    /// How long a pull may take.
    pub pull_timeout: Duration,
    /// Host and port of this worker's side channel, if it has one: without, hand-offs are not offered and not pulled.
    pub side_channel: Option<(String, u16)>,
    /// Time of a decode step.
    pub step_law: StepLaw,
    /// Time of a prefill step.
    pub prefill_law: PrefillLaw,
}

/// The engine at one moment.
#[derive(Clone, Debug)]
pub struct EngineSnapshot {
    /// Sequences in prefill or decode.
    pub running: usize,
    /// Sequences without blocks yet.
    pub waiting: usize,
    /// Sequences whose KV is on its way.
    pub fetching: usize,
    /// Blocks in all.
    pub blocks_total: usize,
    /// Blocks that nobody holds.
    pub blocks_free: usize,
    /// Blocks of finished prefills that wait for their decode worker.
    pub blocks_pinned: usize,
    /// Hand-offs that wait.
    pub hand_offs: usize,
    /// Figures since the last reset.
    pub sim: SimStats,
    /// Figures since start.
    pub metrics: EngineMetrics,
}

pub(super) enum Command {
    Submit(Box<Submission>),
    Pulled(String, Result<Blocks, PullError>, f64),
    Read(Vec<u32>, oneshot::Sender<Vec<u8>>),
    Release(String),
    Reject(HandOff),
    NotifyFailed,
    Snapshot(oneshot::Sender<Box<EngineSnapshot>>),
    Reset(oneshot::Sender<()>),
    Stop,
}

/// The running engine; dropping it does not stop it, [`Engine::stop`] does.
pub struct Engine {
    handle: EngineHandle,
    thread: std::thread::JoinHandle<()>,
}

/// A cheap reference to the engine.
#[derive(Clone)]
pub struct EngineHandle {
    commands: Sender<Command>,
    clock: Arc<dyn Clock>,
    options: Arc<EngineOptions>,
    /// Upgrades as long as the engine thread lives.
    alive: Weak<()>,
}

impl Engine {
    /// Starts the engine thread. Must be called inside a tokio runtime, which runs the KV pulls.
    pub fn start(assets: Assets, options: EngineOptions, clock: Arc<dyn Clock>) -> std::io::Result<Self> {
        let config = assets.model.config();
        let pool = BlockPool::new(
            options.kv_blocks,
            options.block_size,
            config.kv_token_width(),
            config.kv_width(),
        );
        let pulls = PullClient::new(pool.block_width(), options.pull_timeout);
        let (commands, inbox) = channel();
        let life = Arc::new(());
        let handle = EngineHandle {
            commands,
            clock: Arc::clone(&clock),
            options: Arc::new(options.clone()),
            alive: Arc::downgrade(&life),
        };
        let worker = Worker::new(assets, pool, options.capture);
        let runtime = tokio::runtime::Handle::current();
        let core = Core::new(worker, options, clock, inbox, handle.commands.clone(), pulls, runtime);
        let thread = std::thread::Builder::new().name("engine".to_owned()).spawn(move || {
            core.run();
            drop(life);
        })?;
        Ok(Self { handle, thread })
    }

    /// A reference to it.
    pub fn handle(&self) -> EngineHandle {
        self.handle.clone()
    }

    /// Ends the thread; sequences that still run are dropped.
    pub fn stop(self) {
        let _ = self.handle.commands.send(Command::Stop);
        if self.thread.join().is_err() {
            tracing::error!("the engine thread had died");
        }
    }
}

impl EngineHandle {
    /// Hands a sequence to the engine. If the engine has stopped, the sequence's event channel closes without an end.
    pub fn submit(&self, submission: Submission) {
        let _ = self.commands.send(Command::Submit(Box::new(submission)));
    }

    /// The content of blocks as it is now; None if the engine has stopped.
    pub async fn read_blocks(&self, ids: Vec<u32>) -> Option<Vec<u8>> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Read(ids, reply)).ok()?;
        answer.await.ok()
    }

    /// Ends a hand-off.
    pub fn release(&self, request: String) {
        let _ = self.commands.send(Command::Release(request));
    }

    /// Tells the prefill worker that its KV will not be pulled from here.
    pub fn reject(&self, hand_off: HandOff) {
        let _ = self.commands.send(Command::Reject(hand_off));
    }

    /// The engine as it is now; None if it has stopped.
    pub async fn snapshot(&self) -> Option<Box<EngineSnapshot>> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Snapshot(reply)).ok()?;
        answer.await.ok()
    }

    /// Starts the simulator's figures anew.
    pub async fn reset(&self) {
        let (reply, answer) = oneshot::channel();
        if self.commands.send(Command::Reset(reply)).is_ok() {
            let _ = answer.await;
        }
    }

    /// Whether the engine thread still runs.
    pub fn is_alive(&self) -> bool {
        self.alive.upgrade().is_some()
    }

    /// Identity of the process in hand-offs.
    pub fn engine_id(&self) -> &str {
        &self.options.engine_id
    }

    /// How it runs.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// The engine's clock.
    pub fn now(&self) -> Duration {
        self.clock.now()
    }
}
