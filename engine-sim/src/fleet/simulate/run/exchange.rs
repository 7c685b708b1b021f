//! What routers learn of each other's requests.

use super::super::decode::DecodeWorker;
use super::super::events::{Event, nanos};
use super::super::view::Visibility;
use super::Fleet;

impl Fleet<'_> {
    pub(super) fn scrape(&mut self) {
        if let Visibility::Reports {
            interval_s, delay_s, ..
        } = self.setup.options.visibility
        {
            for router in &mut self.routers {
                let counts = self.decode.iter().map(DecodeWorker::requests);
                router.view.scrape(self.now, delay_s, counts);
            }
            self.agenda.at(self.now + nanos(interval_s).max(1), Event::Scrape);
        }
    }

    /// Policies' summaries of batches. They arrive at once: their delay is small beside the interval.
    pub(super) fn exchange_unions(&mut self) {
        for worker in 0..self.decode.len() as u32 {
            let said: Vec<_> = self.routers.iter().map(|r| r.union(worker)).collect();
            for (index, router) in self.routers.iter().enumerate() {
                let mut others = said.iter().enumerate().filter(|(i, _)| *i != index);
                let first = others.find_map(|(_, union)| union.clone());
                if let Some(mut sum) = first {
                    // Summaries of one model always fit each other.
                    others.filter_map(|(_, union)| union.as_ref()).for_each(|u| {
                        let _ = sum.merge(u);
                    });
                    router.set_others(worker, &sum);
                }
            }
        }
    }

    pub(super) fn exchange(&mut self) {
        if let Visibility::Exchange { interval_s, delay_s } = self.setup.options.visibility {
            let all: Vec<u32> = (0..self.decode.len())
                .map(|w| self.routers.iter().map(|r| r.view.own[w]).sum())
                .collect();
            for router in &mut self.routers {
                let others = all.iter().zip(&router.view.own).map(|(all, own)| all - own).collect();
                router.view.tell(self.now, delay_s, others);
            }
            self.exchange_unions();
            self.agenda.at(self.now + nanos(interval_s).max(1), Event::Exchange);
        }
    }
}
