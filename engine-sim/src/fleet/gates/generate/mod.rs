//! Gates made up: requests of any geometry whose statistics are set by hand or fitted to a recording.
//!
//! Each layer has, for every expert, the logarithm of its weight: a base popularity that all requests share, plus an effect of the request's
//! domain, plus an effect of the request itself; all three normal with the standard deviations of [`Parameters`]. In decode two more are added:
//! one shared by all requests (popularity moves between the phases, which lowers the per-expert correlation) and one of the request's own (which lowers rho). A token
//! draws its top-k experts one after the other by these weights, without repeating one; that is what adding Gumbel noise to the logarithms and taking the k
//! largest gives. With some probability a slot keeps the previous token's expert.
//!
//! Prompt tokens are not drawn one by one: their counts come from the experts' chances, with the variance of as many draws.
//!
//! A request is a function of (parameters, geometry, seed, its number, its domains): nothing needs to be kept. Domains are numbered without end, so any that
//! a predictor was not calibrated on is an unseen one. A blended prompt counts half of each domain; its decode leans towards the second by [`Parameters::follow`].
//!
//! `fit` searches the parameters whose [`Statistics`](super::Statistics) are nearest to given ones; [`Match`] prints how near.

mod draw;
mod fit;
mod presets;
mod quick;
mod report;
mod request;
#[cfg(test)]
mod tests;
mod text;

use coterie_locality::Geometry;
use serde::{Deserialize, Serialize};

pub use fit::{Fitted, fit};
pub use presets::{Shape, preset};
pub use report::Match;

use super::Recording;
use quick::Quick;

/// Standard deviations of the logarithms of experts' weights, and two shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameters {
    /// Base popularity of the experts, the same for all requests.
    pub base: f32,
    /// Effect of the domain.
    pub domain: f32,
    /// Effect of the request, the same in prefill and decode.
    pub request: f32,
    /// Change of base popularity from prefill to decode.
    pub phase: f32,
    /// Effect of the request in decode alone.
    pub own: f32,
    /// Chance that a token keeps an expert of the token before it, 0..0.95.
    pub persistence: f32,
    /// Share of the second domain in the decode of a blended prompt, 0..1.
    pub follow: f32,
}

impl Parameters {
    /// The nearest parameters that make sense.
    #[must_use]
    pub fn clamped(self) -> Self {
        let deviation = |v: f32| if v.is_finite() { v.clamp(0.0, 6.0) } else { 0.0 };
        Self {
            base: deviation(self.base),
            domain: deviation(self.domain),
            request: deviation(self.request),
            phase: deviation(self.phase),
            own: deviation(self.own),
            persistence: deviation(self.persistence).min(0.95),
            follow: deviation(self.follow).min(1.0),
        }
    }
}

/// What to generate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Requests.
    pub requests: usize,
    /// Domains, in equal shares. They are numbered from `first_domain`.
    pub domains: usize,
    /// Number of the first domain: two plans without a common domain are unseen by each other.
    #[serde(default)]
    pub first_domain: usize,
    /// Share of the requests, 0..1, whose prompt blends two domains.
    #[serde(default)]
    pub blended: f64,
    /// Shortest and longest prompt, in tokens; drawn evenly.
    pub prompt_tokens: (u32, u32),
    /// Generated tokens of each request that are made up; longer outputs start over.
    pub output_tokens: usize,
    /// Number of the first request.
    #[serde(default)]
    pub first_request: u64,
}

/// A made-up model's gates.
#[derive(Clone, Debug)]
pub struct Generator {
    geometry: Geometry,
    parameters: Parameters,
    seed: u64,
    /// Base logarithms in prefill and decode, [L, E].
    prefill: Vec<f32>,
    decode: Vec<f32>,
}

impl Generator {
    /// Gates of this geometry. The same arguments give the same gates.
    pub fn new(geometry: Geometry, parameters: Parameters, seed: u64) -> Self {
        let parameters = parameters.clamped();
        let effect = |aspect, deviation| -> Vec<f32> {
            let mut rng = Quick::new(seed, aspect, 0);
            (0..geometry.cells()).map(|_| rng.normal() * deviation).collect()
        };
        let prefill = effect(quick::BASE, parameters.base);
        let decode = effect(quick::PHASE, parameters.phase);
        let decode = prefill.iter().zip(decode).map(|(b, p)| b + p).collect();
        Self {
            geometry,
            parameters,
            seed,
            prefill,
            decode,
        }
    }

    /// Shape of the model.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The parameters, clamped.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// A whole recording. Domains are called `domain-0`, `domain-1` and so on.
    pub fn recording(&self, plan: &Plan) -> Recording {
        let domains = plan.domains.clamp(1, 4096);
        let (short, long) = (
            plan.prompt_tokens.0.max(1),
            plan.prompt_tokens.1.max(plan.prompt_tokens.0).max(1),
        );
        let requests = (0..plan.requests).map(|i| {
            let number = plan.first_request.wrapping_add(i as u64);
            let mut rng = Quick::new(self.seed, quick::PLAN, number);
            let prompt_tokens = short + rng.below(u64::from(long - short) + 1) as u32;
            let first = rng.below(domains as u64) as usize;
            let kinds = if domains > 1 && rng.unit() < plan.blended {
                let other = (first + 1 + rng.below(domains as u64 - 1) as usize) % domains;
                vec![first as u16, other as u16]
            } else {
                vec![first as u16]
            };
            let numbers: Vec<usize> = kinds.iter().map(|d| plan.first_domain + usize::from(*d)).collect();
            let mut request = self.request(number, &numbers, prompt_tokens, plan.output_tokens);
            request.domains = kinds;
            std::sync::Arc::new(request)
        });
        Recording {
            geometry: self.geometry,
            requests: requests.collect(),
            domain_names: (0..domains)
                .map(|d| format!("domain-{}", plan.first_domain + d))
                .collect(),
        }
    }
}
