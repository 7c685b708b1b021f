//! Which recorded request is sent when: all from one seed.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::args::Part;
use crate::recording::Recording;

/// Domains with their weights.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Domain, weight, its requests.
    domains: Vec<(String, f64, Vec<usize>)>,
}

impl Mix {
    /// Parses `python=2`, `zh`, ...; none means all pure domains alike.
    pub fn parse(domains: &[String], recording: &Recording, part: Part) -> Result<Self> {
        let mut by_domain: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for request in 0..recording.len() {
            by_domain.entry(recording.domain(request)).or_default().push(request);
        }
        for requests in by_domain.values_mut() {
            *requests = part.of(requests);
        }
        let pure = || by_domain.iter().filter(|(name, _)| !name.contains('+'));
        if domains.is_empty() {
            return Ok(Self {
                domains: pure().map(|(name, r)| ((*name).to_owned(), 1.0, r.clone())).collect(),
            });
        }
        let mut mix: Vec<(String, f64, Vec<usize>)> = Vec::new();
        for text in domains {
            let (name, weight) = text.split_once('=').unwrap_or((text, "1"));
            let Some(requests) = by_domain.get(name) else {
                let known: Vec<&str> = pure().map(|(name, _)| *name).collect();
                bail!("the recording has no domain {name:?}; it has {}", known.join(", "));
            };
            let weight: f64 = weight.parse().unwrap_or(f64::NAN);
            ensure!(
                weight > 0.0 && weight.is_finite(),
                "{text:?}: a weight is a number above 0"
            );
            ensure!(mix.iter().all(|m| m.0 != name), "domain {name:?} is named twice");
            mix.push((name.to_owned(), weight, requests.clone()));
        }
        Ok(Self { domains: mix })
    }
}

/// One request to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planned {
    /// Index in the recording.
    pub request: usize,
    /// Seconds after the request before it (open loop).
    pub gap: f64,
    /// Seed of its sampling.
    pub seed: u32,
}

/// Draws requests: domains by weight, within a domain each recorded request once before any comes again.
pub struct Planner {
    mix: Mix,
    /// Requests of each domain that are not used in this round.
    left: Vec<Vec<usize>>,
    rng: Xoshiro256PlusPlus,
    rate: f64,
}

impl Planner {
    /// A planner for `rate` requests per second (ignored in closed loop).
    pub fn new(mix: Mix, seed: u64, rate: f64) -> Self {
        let left = mix.domains.iter().map(|_| Vec::new()).collect();
        Self {
            mix,
            left,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            rate,
        }
    }

    /// The next request.
    pub fn next_request(&mut self) -> Planned {
        let total: f64 = self.mix.domains.iter().map(|d| d.1).sum();
        let mut at = self.rng.r#gen::<f64>() * total;
        let mut domain = 0;
        for (i, (_, weight, _)) in self.mix.domains.iter().enumerate() {
            domain = i;
            at -= weight;
            if at < 0.0 {
                break;
            }
        }
        if self.left[domain].is_empty() {
            self.left[domain].clone_from(&self.mix.domains[domain].2);
            self.left[domain].shuffle(&mut self.rng);
        }
        let request = self.left[domain].pop().unwrap_or_default();
        let gap = -(1.0 - self.rng.r#gen::<f64>()).ln() / self.rate;
        Planned {
            request,
            gap,
            seed: self.rng.r#gen(),
        }
    }

    /// `count` different requests, or all there are.
    pub fn distinct(&mut self, count: usize) -> Vec<usize> {
        let available: usize = self.mix.domains.iter().map(|d| d.2.len()).sum();
        let mut chosen = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while chosen.len() < count.min(available) {
            let request = self.next_request().request;
            if seen.insert(request) {
                chosen.push(request);
            }
        }
        chosen
    }
}
