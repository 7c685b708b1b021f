//! What each router knows of the decode workers' load: its own requests at once, others' late or not at all.

use std::collections::VecDeque;

use super::events::{Nanos, nanos};

/// How routers learn of requests that other routers placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Visibility {
    /// Not at all.
    OwnOnly,
    /// From the engines' metrics, scraped at intervals; the reply is late, and too old a report is ignored.
    Reports {
        /// Seconds between scrapes.
        interval_s: f64,
        /// Seconds from the engine's count to the router's use of it.
        delay_s: f64,
        /// Seconds after which a report is ignored.
        max_age_s: f64,
    },
    /// From each other, at intervals: reservations per worker, and the policy's own summary.
    Exchange {
        /// Seconds between messages.
        interval_s: f64,
        /// Seconds that a message takes.
        delay_s: f64,
    },
}

#[derive(Clone, Copy, Debug)]
struct Report {
    requests: u32,
    own_then: u32,
    at: Nanos,
}

/// One router's counts, by worker.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Own requests, reserved or running.
    pub(super) own: Vec<u32>,
    /// Own requests that were sent to the worker.
    pub(super) dispatched: Vec<u32>,
    reports: Vec<Option<Report>>,
    /// Other routers' requests, as they last said.
    peers: Vec<u32>,
    on_the_way: VecDeque<(Nanos, Vec<Report>)>,
    peers_on_the_way: VecDeque<(Nanos, Vec<u32>)>,
}

impl View {
    pub(super) fn grow(&mut self, workers: usize) {
        self.own.resize(workers, 0);
        self.dispatched.resize(workers, 0);
        self.reports.resize(workers, None);
        self.peers.resize(workers, 0);
    }

    /// The engines' counts leave for this router.
    pub(super) fn scrape(&mut self, now: Nanos, delay_s: f64, requests: impl Iterator<Item = u32>) {
        let reports = requests.zip(&self.dispatched).map(|(requests, own)| Report {
            requests,
            own_then: *own,
            at: now,
        });
        self.on_the_way.push_back((now + nanos(delay_s), reports.collect()));
    }

    /// Other routers' sums leave for this router.
    pub(super) fn tell(&mut self, now: Nanos, delay_s: f64, others: Vec<u32>) {
        self.peers_on_the_way.push_back((now + nanos(delay_s), others));
    }

    /// Writes the load of each of the `live` workers, as this router sees it, to `loads`.
    pub(super) fn loads(&mut self, now: Nanos, visibility: &Visibility, live: &[u32], loads: &mut Vec<f32>) {
        while self.on_the_way.front().is_some_and(|(at, _)| *at <= now) {
            for (slot, report) in self
                .reports
                .iter_mut()
                .zip(self.on_the_way.pop_front().into_iter().flat_map(|m| m.1))
            {
                *slot = Some(report);
            }
        }
        while self.peers_on_the_way.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, others)) = self.peers_on_the_way.pop_front() {
                self.peers[..others.len()].copy_from_slice(&others);
            }
        }
        loads.clear();
        loads.extend(live.iter().map(|worker| {
            let w = *worker as usize;
            let others = match visibility {
                Visibility::OwnOnly => 0,
                Visibility::Exchange { .. } => self.peers[w],
                Visibility::Reports { max_age_s, .. } => self.reports[w]
                    .filter(|r| now.saturating_sub(r.at) <= nanos(*max_age_s))
                    .map_or(0, |r| r.requests.saturating_sub(r.own_then)),
            };
            (self.own[w] + others) as f32
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(view: &mut View, at_s: f64, visibility: &Visibility) -> f32 {
        let mut loads = Vec::new();
        view.loads(nanos(at_s), visibility, &[0], &mut loads);
        loads[0]
    }

    #[test]
    fn reports_come_late_and_age_out() {
        let mut view = View::default();
        view.grow(1);
        (view.own[0], view.dispatched[0]) = (2, 1);
        view.scrape(nanos(1.0), 0.5, [5].into_iter());
        let reports = Visibility::Reports {
            interval_s: 1.0,
            delay_s: 0.5,
            max_age_s: 5.0,
        };
        assert_eq!(seen(&mut view, 1.4, &reports), 2.0);
        assert_eq!(seen(&mut view, 1.5, &reports), 6.0, "2 own and 4 of others");
        assert_eq!(seen(&mut view, 6.1, &reports), 2.0);
        assert_eq!(seen(&mut view, 1.5, &Visibility::OwnOnly), 2.0);
    }

    #[test]
    fn peers_counts_replace_each_other() {
        let mut view = View::default();
        view.grow(1);
        let exchange = Visibility::Exchange {
            interval_s: 0.1,
            delay_s: 0.01,
        };
        view.tell(nanos(1.0), 0.01, vec![3]);
        view.tell(nanos(1.1), 0.01, vec![7]);
        assert_eq!(seen(&mut view, 1.0, &exchange), 0.0);
        assert_eq!(seen(&mut view, 1.01, &exchange), 3.0);
        assert_eq!(seen(&mut view, 1.2, &exchange), 7.0);
    }
}
