//! Prefill steps, and where their prompts go next.

use super::super::events::{Event, nanos};
use super::super::journey::End;
use super::super::options::FirstToken;
use super::Fleet;

impl Fleet<'_> {
    pub(super) fn begin_prefill(&mut self, worker: u32) {
        let Some(options) = &self.setup.options.prefill else {
            return;
        };
        if let Some(takes) = self.prefill[worker as usize].begin(options) {
            self.tally.prefill_steps += 1;
            self.agenda.at(self.now + nanos(takes), Event::PrefillEnds(worker));
        }
    }

    pub(super) fn prefill_ends(&mut self, worker: u32) {
        let mut done = std::mem::take(&mut self.done);
        self.prefill[worker as usize].end(&mut done);
        for prompt in done.drain(..) {
            let journey = &mut self.journeys[prompt.request as usize];
            if journey.attempt != prompt.attempt || journey.end != End::Pending {
                continue;
            }
            if self.setup.options.first_token == FirstToken::Prefill && journey.first.is_none() {
                journey.first = Some(self.now);
                journey.tokens = 1;
                if journey.arrival.output_tokens <= 1 {
                    self.end(prompt.request, End::Finished);
                    continue;
                }
            }
            if self.journeys[prompt.request as usize].held || self.place(prompt.request) {
                self.hand_off(prompt.request);
            }
        }
        self.done = done;
        self.begin_prefill(worker);
    }
}
