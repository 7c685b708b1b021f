//! A clock that jumps from event to event: the engine's own deadlines, and arrivals.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use coterie_engine_sim::engine::{Clock, EngineHandle, Event, Submission};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

/// One answer: the times of its tokens so far.
pub(super) struct Stream {
    pub(super) events: UnboundedReceiver<Event>,
    pub(super) times: Vec<Duration>,
    pub(super) ended: bool,
}

/// What is to happen.
pub(super) struct Plan {
    pub(super) engine: EngineHandle,
    /// By time.
    pub(super) due: VecDeque<(Duration, Submission)>,
    pub(super) streams: Vec<Stream>,
    /// Gets the times of every stream's tokens when all have ended.
    pub(super) done: oneshot::Sender<Vec<Vec<Duration>>>,
}

#[derive(Default)]
struct State {
    now: Duration,
    plan: Option<Plan>,
}

/// Stands until it has a plan.
#[derive(Default)]
pub(super) struct EventClock(Mutex<State>);

impl EventClock {
    pub(super) fn follow(&self, plan: Plan) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).plan = Some(plan);
    }
}

impl Clock for EventClock {
    fn now(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).now
    }

    fn skip(&self, left: Duration) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).skip(left)
    }
}

impl State {
    fn skip(&mut self, left: Duration) -> bool {
        let Some(plan) = &mut self.plan else { return false };
        // All that was sent since the last jump was sent now.
        for stream in &mut plan.streams {
            while let Ok(event) = stream.events.try_recv() {
                let Event::Token(token) = event else {
                    panic!("a sequence failed: {event:?}")
                };
                stream.times.push(self.now);
                stream.ended = token.finish.is_some();
            }
        }
        if plan.due.is_empty() && plan.streams.iter().all(|s| s.ended) {
            if let Some(plan) = self.plan.take() {
                let _ = plan.done.send(plan.streams.into_iter().map(|s| s.times).collect());
            }
            return false;
        }
        let until = self.now + left;
        if plan.due.front().is_some_and(|(at, _)| *at <= until) {
            if let Some((at, submission)) = plan.due.pop_front() {
                self.now = at.max(self.now);
                plan.engine.submit(submission);
            }
        } else {
            self.now = until;
        }
        true
    }
}
