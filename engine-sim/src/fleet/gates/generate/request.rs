//! One made-up request.

use coterie_locality::ActivationCounts;

use super::draw::{Layer, Tokens, chances, counts};
use super::quick::{self, Quick, exp};
use super::{Generator, text};
use crate::fleet::gates::{Choices, RequestGates};

impl Generator {
    /// The request of this number in one or two domains (more are ignored; without any it is of domain 0). Its `domains` are 0, or 0 and 1: positions
    /// in `domains` as given.
    pub fn request(&self, number: u64, domains: &[usize], prompt_tokens: u32, output_tokens: usize) -> RequestGates {
        let geometry = self.geometry;
        let (experts, top_k, p) = (geometry.experts, geometry.top_k, self.parameters);
        let first = domains.first().copied().unwrap_or(0);
        let second = domains.get(1).copied();
        let parts: Vec<(usize, u32)> = match second {
            // The first half is of the first domain; an odd token goes to the second.
            Some(second) => vec![(first, prompt_tokens / 2), (second, prompt_tokens - prompt_tokens / 2)],
            None => vec![(first, prompt_tokens)],
        };
        let follow = if second.is_some() { p.follow } else { 0.0 };

        let stream = |aspect| Quick::new(self.seed, aspect, number);
        let (mut shared, mut own) = (stream(quick::REQUEST), stream(quick::OWN));
        let (mut counting, mut drawing) = (stream(quick::COUNTS), stream(quick::TOKENS));
        let mut effects: Vec<Quick> = parts
            .iter()
            .map(|(domain, _)| Quick::new(self.seed, quick::DOMAIN, *domain as u64))
            .collect();
        // Tokens that keep experts are worth fewer draws.
        let spread = (1.0 + p.persistence) / (1.0 - p.persistence);

        let mut cells = vec![0u32; geometry.cells()];
        let mut ids = vec![0u16; output_tokens * geometry.ids_per_token()];
        let mut layer_slots = Layer::new();
        let (mut weights, mut chance) = (vec![0f32; experts], vec![0f32; experts]);
        let (mut request, mut decode) = (vec![0f32; experts], vec![0f32; experts]);
        for layer in 0..geometry.layers {
            let at = layer * experts..(layer + 1) * experts;
            for effect in &mut request {
                *effect = shared.normal() * p.request;
            }
            decode.fill(0.0);
            let shares = [1.0 - follow, follow];
            for ((effect, (_, tokens)), share) in effects.iter_mut().zip(&parts).zip(shares) {
                for (e, base) in self.prefill[at.clone()].iter().enumerate() {
                    let domain = effect.normal() * p.domain;
                    weights[e] = exp(base + request[e] + domain);
                    decode[e] += share * domain;
                }
                chances(&weights, top_k, &mut chance);
                counts(&chance, *tokens, top_k, spread, &mut counting, &mut cells[at.clone()]);
            }
            for (e, base) in self.decode[at].iter().enumerate() {
                weights[e] = exp(base + request[e] + decode[e] + own.normal() * p.own);
            }
            layer_slots.fill(&weights, &mut drawing);
            let mut tokens = Tokens {
                ids: &mut ids,
                count: output_tokens,
                stride: geometry.ids_per_token(),
                offset: layer * top_k,
            };
            layer_slots.draw(experts, top_k, p.persistence, &mut drawing, &mut tokens);
        }
        let prefill = ActivationCounts::from_cells(&geometry, cells, u64::from(prompt_tokens));
        RequestGates {
            prompt_tokens,
            // Cannot fail: sizes and ids are the geometry's.
            prefill: prefill.unwrap_or_else(|_| ActivationCounts::zeros(&geometry)),
            decode: Choices::new(geometry, &ids).unwrap_or_else(|_| Choices::none(geometry)),
            domains: if second.is_some() { vec![0, 1] } else { vec![0] },
            ngrams: Vec::new(),
            text: Some(text::write(self.seed, number, &parts)),
        }
    }
}
