//! A prefill worker: prompts in order of arrival, several in one step where they fit.

use std::collections::VecDeque;

use crate::fleet::law::PrefillLaw;

/// The prefill pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrefillOptions {
    /// Workers.
    pub workers: usize,
    /// Time of a step. Prompts of one step attend to themselves only; their tokens are taken as one prompt's.
    pub law: PrefillLaw,
    /// Prompt tokens that one step takes at most; a longer prompt has a step of its own. 0: one prompt at a time.
    pub max_batch_tokens: u64,
}

/// A prompt in a prefill worker's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) request: u32,
    pub(super) attempt: u32,
    /// Tokens that are not in the prefix cache.
    pub(super) tokens: u32,
}

#[derive(Default)]
pub(super) struct PrefillWorker {
    queue: VecDeque<Prompt>,
    queued_tokens: u64,
    step: Vec<Prompt>,
}

impl PrefillWorker {
    pub(super) fn push(&mut self, prompt: Prompt) {
        self.queued_tokens += u64::from(prompt.tokens);
        self.queue.push_back(prompt);
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.step.is_empty()
    }

    /// Requests waiting or in the step.
    pub(super) fn requests(&self) -> usize {
        self.queue.len() + self.step.len()
    }

    /// Begins a step and returns its seconds; `None` without prompts.
    pub(super) fn begin(&mut self, options: &PrefillOptions) -> Option<f64> {
        let first = self.queue.pop_front()?;
        let mut tokens = u64::from(first.tokens);
        self.step.push(first);
        while let Some(next) = self.queue.front()
            && tokens + u64::from(next.tokens) <= options.max_batch_tokens
        {
            tokens += u64::from(next.tokens);
            self.step.extend(self.queue.pop_front());
        }
        self.queued_tokens -= tokens;
        Some(options.law.seconds(tokens as f64, 0.0))
    }

    /// Ends the step: moves its prompts to `done`.
    pub(super) fn end(&mut self, done: &mut Vec<Prompt>) {
        done.append(&mut self.step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(request: u32, tokens: u32) -> Prompt {
        Prompt {
            request,
            attempt: 0,
            tokens,
        }
    }

    #[test]
    fn steps_take_prompts_in_order_as_they_fit() {
        let mut options = PrefillOptions {
            workers: 1,
            law: PrefillLaw {
                fixed: 1.0,
                per_token: 0.5,
                per_token_squared: 0.0,
                weights: 0.0,
            },
            max_batch_tokens: 10,
        };
        let (mut worker, mut done) = (PrefillWorker::default(), Vec::new());
        for (request, tokens) in [(0, 4), (1, 6), (2, 1), (3, 99)] {
            worker.push(prompt(request, tokens));
        }
        assert_eq!(worker.begin(&options), Some(6.0));
        assert_eq!((worker.requests(), worker.is_busy()), (4, true));
        worker.end(&mut done);
        assert_eq!(done, [prompt(0, 4), prompt(1, 6)]);
        assert_eq!(
            worker.begin(&options),
            Some(1.5),
            "the long one waits for a step of its own"
        );
        options.max_batch_tokens = 0;
        worker.end(&mut done);
        assert_eq!(worker.begin(&options), Some(50.5));
        worker.end(&mut done);
        assert_eq!((worker.begin(&options), worker.is_busy()), (None, false));
    }
}
