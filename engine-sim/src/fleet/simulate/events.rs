//! What happens next: events by time, equal times in the order they were scheduled.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Simulated time in nanoseconds since the start of the run.
pub type Nanos = u64;

/// Seconds to nanoseconds; negative and unrepresentable times become 0 and the end of time.
pub fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9).round() as Nanos
}

/// Nanoseconds to seconds.
pub fn seconds(at: Nanos) -> f64 {
    at as f64 / 1e9
}

/// Something that happens to the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The next request of the workload comes in.
    Arrival(u32),
    /// A prefill worker ends its step.
    PrefillEnds(u32),
    /// A request's KV is at its decode worker; the attempt says whether it is still wanted.
    HandedOff { request: u32, attempt: u32 },
    /// A decode worker ends its step; the incarnation says whether it is still alive.
    StepEnds { worker: u32, incarnation: u32 },
    /// Engines' own load reports are scraped by every router.
    Scrape,
    /// Routers tell each other their reservations.
    Exchange,
    /// A line of the script of faults and scaling.
    Script(u32),
    /// A worker that was started has loaded its model.
    Loaded(u32),
}

#[derive(PartialEq, Eq)]
struct Entry {
    at: Nanos,
    order: u64,
    event: Event,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap yields the greatest: turned round, the earliest.
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The future.
#[derive(Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Entry>,
    scheduled: u64,
}

impl Agenda {
    pub(super) fn at(&mut self, at: Nanos, event: Event) {
        self.scheduled += 1;
        self.heap.push(Entry {
            at,
            order: self.scheduled,
            event,
        });
    }

    pub(super) fn next(&mut self) -> Option<(Nanos, Event)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earliest_first_and_equals_in_order() {
        let mut agenda = Agenda::default();
        agenda.at(5, Event::Arrival(1));
        agenda.at(3, Event::Arrival(2));
        agenda.at(5, Event::Arrival(3));
        let order: Vec<_> = std::iter::from_fn(|| agenda.next()).collect();
        assert_eq!(
            order,
            [(3, Event::Arrival(2)), (5, Event::Arrival(1)), (5, Event::Arrival(3))]
        );
        assert_eq!(nanos(1.5), 1_500_000_000);
        assert_eq!(nanos(-1.0), 0);
    }
}
