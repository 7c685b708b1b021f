//! Workers that start, leave and die, and what becomes of their requests.

use super::super::decode::{DecodeWorker, Life};
use super::super::events::{Event, nanos};
use super::super::journey::End;
use super::super::options::Change;
use super::Fleet;

impl Fleet<'_> {
    /// The worker under a request died: a fresh attempt if nothing was sent to the client yet, else it fails.
    pub(super) fn again(&mut self, request: u32) {
        let journey = &mut self.journeys[request as usize];
        let by_decode = u64::from(journey.tokens);
        if journey.first.is_some() || journey.attempt + 1 >= self.setup.options.attempts {
            self.tally.lost_tokens += by_decode;
            self.end(request, End::Failed);
            return;
        }
        self.release(request);
        self.tally.restarted += 1;
        self.journeys[request as usize].attempt += 1;
        self.start(request);
    }

    pub(super) fn change(&mut self, change: Change) {
        match change {
            Change::Start(count) => (0..count).for_each(|_| self.start_worker()),
            Change::Drain(worker) => self.drain(worker),
            Change::Lose(worker) => self.lose(worker),
            Change::Scale(wanted) => {
                let up = |w: &&DecodeWorker| matches!(w.life, Life::Live | Life::Starting);
                let now = self.decode.iter().filter(up).count() as u32;
                (now..wanted).for_each(|_| self.start_worker());
                for _ in wanted..now {
                    let newest = self
                        .decode
                        .iter()
                        .rposition(|w| matches!(w.life, Life::Live | Life::Starting));
                    if let Some(worker) = newest {
                        self.drain(worker as u32);
                    }
                }
            }
        }
    }

    pub(super) fn start_worker(&mut self) {
        let worker = self.decode.len() as u32;
        let row_words = self.setup.activity.row_words();
        self.decode.push(DecodeWorker::new(Life::Starting, row_words));
        self.tally.request_s.push(0.0);
        self.observing.push((0, 0.0));
        let loaded = self.now + nanos(self.setup.options.load_s);
        self.agenda.at(loaded, Event::Loaded(worker));
    }

    pub(super) fn drain(&mut self, worker: u32) {
        if let Some(decode) = self.decode.get_mut(worker as usize)
            && matches!(decode.life, Life::Live | Life::Starting)
        {
            // Requests on their way to it are still welcome.
            decode.life = Life::Draining;
            self.membership();
        }
    }

    pub(super) fn lose(&mut self, worker: u32) {
        let Some(decode) = self.decode.get_mut(worker as usize) else {
            return;
        };
        decode.life = Life::Gone;
        decode.incarnation += 1;
        decode.stepping = false;
        decode.kv_used = 0;
        let mut under: Vec<u32> = decode.running.drain(..).map(|job| job.request).collect();
        under.extend(decode.waiting.drain(..).map(|job| job.request));
        self.membership();
        for request in under {
            self.tally.in_decode(self.now, -1);
            self.again(request);
        }
    }

    pub(super) fn membership(&mut self) {
        self.live = (0..self.decode.len() as u32)
            .filter(|w| self.decode[*w as usize].life == Life::Live)
            .collect();
        for router in &mut self.routers {
            router.workers(&self.live, self.decode.len());
        }
    }
}
