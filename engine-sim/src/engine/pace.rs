//! How long a GPU would take: laws that turn a step's work into time.

use std::time::Duration;

/// Time of a decode step. A step reads the weights of every distinct expert of its batch once.
#[derive(Clone, Copy, Debug)]
pub struct StepLaw {
    /// Part that every step takes, in milliseconds.
    pub base_ms: f64,
    /// Per distinct expert, summed over layers, in milliseconds.
    pub per_expert_ms: f64,
    /// Per request in the batch, in milliseconds.
    pub per_request_ms: f64,
    /// Multiplies the whole; 0 switches pacing off.
    pub time_scale: f64,
}

impl StepLaw {
    /// Time of a step over `requests` requests that activated `distinct` experts.
    pub fn time(&self, distinct: usize, requests: usize) -> Duration {
        let ms = self.base_ms + self.per_expert_ms * distinct as f64 + self.per_request_ms * requests as f64;
        scaled(ms, self.time_scale)
    }
}

/// Time of a prefill step.
#[derive(Clone, Copy, Debug)]
pub struct PrefillLaw {
    /// Part that every prefill step takes, in milliseconds.
    pub base_ms: f64,
    /// Per prompt token, in microseconds.
    pub per_token_us: f64,
    /// Multiplies the whole; 0 switches pacing off.
    pub time_scale: f64,
}

impl PrefillLaw {
    /// Time of a step over `tokens` prompt tokens.
    pub fn time(&self, tokens: usize) -> Duration {
        scaled(
            self.base_ms + self.per_token_us * tokens as f64 / 1000.0,
            self.time_scale,
        )
    }
}

fn scaled(ms: f64, scale: f64) -> Duration {
    Duration::try_from_secs_f64(ms * scale / 1000.0).unwrap_or_default()
}

/// When steps start and end. A step that follows another at once starts at the other's deadline, not at the moment the thread woke up:
/// so wake-up delays do not add up, and only work that does not fit its time is an overrun.
#[derive(Default)]
pub(super) struct Pacer {
    last_deadline: Option<Duration>,
}

impl Pacer {
    /// Start of a step that begins now.
    pub(super) fn start(&self, now: Duration) -> Duration {
        self.last_deadline.map_or(now, |deadline| deadline.min(now))
    }

    /// Deadline of a step, and whether its work ended after it.
    pub(super) fn end(&mut self, start: Duration, takes: Duration, now: Duration) -> (Duration, bool) {
        let deadline = start + takes;
        let overrun = !takes.is_zero() && now > deadline;
        self.last_deadline = Some(if overrun || takes.is_zero() { now } else { deadline });
        (deadline, overrun)
    }

    /// A step that takes no time has ended: the next one starts when this one did.
    pub(super) fn keep(&mut self, start: Duration) {
        self.last_deadline = Some(start);
    }

    /// The engine has nothing to do: the next step starts when its work comes.
    pub(super) fn idle(&mut self) {
        self.last_deadline = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn laws_add_their_parts_and_scale() {
        let law = StepLaw {
            base_ms: 4.0,
            per_expert_ms: 0.08,
            per_request_ms: 0.05,
            time_scale: 0.5,
        };
        assert_eq!(law.time(100, 20), Duration::from_micros(6500));
        let law = PrefillLaw {
            base_ms: 2.0,
            per_token_us: 50.0,
            time_scale: 0.0,
        };
        assert_eq!(law.time(100), Duration::ZERO);
    }

    #[test]
    fn late_wake_ups_do_not_add_up_but_overruns_do() {
        let mut pacer = Pacer::default();
        let start = pacer.start(MS(100));
        assert_eq!(pacer.end(start, MS(10), MS(102)), (MS(110), false));
        assert_eq!(pacer.start(MS(111)), MS(110));
        let start = pacer.start(MS(112));
        assert_eq!(start, MS(110), "asking does not use it up: prefill and decode both ask");
        assert_eq!(pacer.end(start, MS(10), MS(125)), (MS(120), true));
        assert_eq!(pacer.start(MS(126)), MS(125));
        pacer.keep(MS(125));
        assert_eq!(pacer.start(MS(128)), MS(125));
        pacer.idle();
        assert_eq!(pacer.start(MS(500)), MS(500));
    }
}
