//! Which domains requests are of, over time.

use std::collections::BTreeMap;

use rand::Rng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::WorkloadError;
use crate::fleet::gates::Recording;

/// Weights at a moment. Between two points they change in a straight line; before the first and after the last they stay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MixPoint {
    /// Seconds since the start.
    #[serde(rename = "timeS")]
    pub time_s: f64,
    /// Weight of each domain by name, not negative; a domain without one has 0. They need not add up to anything.
    pub weights: BTreeMap<String, f64>,
    /// Share of the requests, 0..1, that blend two domains in one prompt.
    #[serde(default)]
    pub blended: f64,
}

/// Domains over time. Without points: all requests of the recording alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mix {
    /// By time.
    pub points: Vec<MixPoint>,
}

fn point(time_s: f64, weights: impl IntoIterator<Item = (String, f64)>) -> MixPoint {
    MixPoint {
        time_s,
        weights: weights.into_iter().collect(),
        blended: 0.0,
    }
}

impl Mix {
    /// These weights at all times.
    pub fn fixed<'a>(weights: impl IntoIterator<Item = (&'a str, f64)>) -> Self {
        let weights = weights.into_iter().map(|(name, w)| (name.to_owned(), w));
        Self {
            points: vec![point(0.0, weights)],
        }
    }

    /// All of `before` alike until `from_s`, then in a straight line to all of `after` alike at `to_s`. Equal times make a jump.
    pub fn drift(before: &[&str], after: &[&str], from_s: f64, to_s: f64) -> Self {
        let alike = |names: &[&str]| {
            let share = 1.0 / names.len().max(1) as f64;
            names.iter().map(move |n| ((*n).to_owned(), share)).collect::<Vec<_>>()
        };
        Self {
            points: vec![point(from_s, alike(before)), point(to_s, alike(after))],
        }
    }

    /// All of `known` alike; at `at_s` another domain appears at once and takes this share of the requests.
    pub fn appear(known: &[&str], new: &str, share: f64, at_s: f64) -> Self {
        let rest = (1.0 - share) / known.len().max(1) as f64;
        let after = known
            .iter()
            .map(|n| ((*n).to_owned(), rest))
            .chain([(new.to_owned(), share)]);
        let mut mix = Self::drift(known, known, at_s, at_s);
        mix.points[1] = point(at_s, after);
        mix
    }

    /// All of `known` alike; at `at_s` one of them stops at once.
    pub fn vanish(known: &[&str], gone: &str, at_s: f64) -> Self {
        let left: Vec<&str> = known.iter().copied().filter(|n| *n != gone).collect();
        Self::drift(known, &left, at_s, at_s)
    }

    /// The same, with this share of blended prompts at all points.
    #[must_use]
    pub fn with_blended(mut self, share: f64) -> Self {
        self.points.iter_mut().for_each(|p| p.blended = share);
        self
    }

    /// Weights at a moment, and the share of blended prompts. Empty without points.
    pub fn at(&self, time_s: f64) -> (BTreeMap<String, f64>, f64) {
        let next = self.points.partition_point(|p| p.time_s <= time_s);
        let (before, after) = match (next.checked_sub(1), self.points.get(next)) {
            (Some(at), Some(after)) => (&self.points[at], after),
            (Some(at), None) => (&self.points[at], &self.points[at]),
            (None, Some(first)) => (first, first),
            (None, None) => return (BTreeMap::new(), 0.0),
        };
        let span = after.time_s - before.time_s;
        let part = if span > 0.0 {
            ((time_s - before.time_s) / span).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let mut weights = BTreeMap::new();
        for (point, share) in [(before, 1.0 - part), (after, part)] {
            for (name, weight) in &point.weights {
                *weights.entry(name.clone()).or_insert(0.0) += share * weight;
            }
        }
        (weights, before.blended * (1.0 - part) + after.blended * part)
    }

    pub(super) fn picker<'a>(
        &'a self,
        recording: &'a Recording,
        rng: Xoshiro256PlusPlus,
    ) -> Result<Picker<'a>, WorkloadError> {
        let ascending = self.points.windows(2).all(|w| w[0].time_s <= w[1].time_s);
        let numbers = self.points.iter().all(|p| {
            let weights = p.weights.values();
            p.time_s.is_finite()
                && (0.0..=1.0).contains(&p.blended)
                && weights.clone().all(|w| *w >= 0.0 && w.is_finite())
        });
        if !ascending || !numbers {
            return Err(WorkloadError(
                "the mix needs points by time, weights that are not negative, blended shares of 0 to 1".to_owned(),
            ));
        }
        for name in self.points.iter().flat_map(|p| p.weights.keys()) {
            if recording.find_domain(name).is_none() {
                return Err(WorkloadError(format!(
                    "the recording has no domain {name:?}, it has: {}",
                    recording.domain_names.join(", ")
                )));
            }
        }
        let mut picker = Picker {
            mix: self,
            recording,
            pools: BTreeMap::new(),
            rng,
        };
        for (request, gates) in recording.requests.iter().enumerate() {
            let mut add = |pool: Pool| picker.pools.entry(pool).or_default().requests.push(request);
            add(Pool::All);
            match gates.domains[..] {
                [domain] => add(Pool::Pure(domain)),
                [a, b] => {
                    add(Pool::Blended(a));
                    if b != a {
                        add(Pool::Blended(b));
                    }
                }
                _ => {}
            }
        }
        Ok(picker)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    All,
    Pure(u16),
    Blended(u16),
}

/// Requests dealt from a shuffled deck, which is shuffled anew when it is empty.
#[derive(Default)]
struct Deck {
    requests: Vec<usize>,
    dealt: usize,
}

impl Deck {
    fn deal(&mut self, rng: &mut Xoshiro256PlusPlus) -> Option<usize> {
        if self.dealt == 0 || self.dealt == self.requests.len() {
            self.requests.shuffle(rng);
            self.dealt = 0;
        }
        self.dealt += 1;
        self.requests.get(self.dealt - 1).copied()
    }
}

/// Picks requests by the mix.
pub(super) struct Picker<'a> {
    mix: &'a Mix,
    recording: &'a Recording,
    pools: BTreeMap<Pool, Deck>,
    rng: Xoshiro256PlusPlus,
}

impl Picker<'_> {
    fn deal(&mut self, pool: Pool) -> Option<usize> {
        self.pools.get_mut(&pool)?.deal(&mut self.rng)
    }

    /// A request for this moment.
    pub(super) fn pick(&mut self, time_s: f64) -> Result<usize, WorkloadError> {
        if self.mix.points.is_empty() {
            return self
                .deal(Pool::All)
                .ok_or_else(|| WorkloadError("the recording has no requests".to_owned()));
        }
        let (weights, blended) = self.mix.at(time_s);
        let blend = self.rng.r#gen::<f64>() < blended;
        let total: f64 = weights.values().sum();
        let mut at = self.rng.r#gen::<f64>() * total;
        let drawn = weights.iter().find(|(_, weight)| {
            at -= **weight;
            at < 0.0
        });
        let Some((name, _)) = drawn else {
            return Err(WorkloadError(format!("the mix has no weight at {time_s:.1} s")));
        };
        let domain = self.recording.find_domain(name).unwrap_or_default();
        let (pool, kind) = if blend {
            (Pool::Blended(domain), "blended with")
        } else {
            (Pool::Pure(domain), "of")
        };
        self.deal(pool)
            .ok_or_else(|| WorkloadError(format!("the recording has no request {kind} {name:?}")))
    }

    /// Another request of the same domains as `request`, or itself if there is none.
    pub(super) fn pick_like(&mut self, request: usize) -> usize {
        let pool = match self.recording.requests[request].domains[..] {
            [domain] => Pool::Pure(domain),
            [a, ..] => Pool::Blended(a),
            [] => return request,
        };
        self.deal(pool).unwrap_or(request)
    }
}
