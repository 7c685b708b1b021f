//! Seeded requests with the structure of real gates: domains of unequal traffic, experts of unequal popularity (Zipf), requests that
//! differ inside a domain and sometimes blend two, and decode that resembles prefill.

mod text;

use coterie_locality::{ActivationCounts, Geometry, Sample, table::Fingerprint};
use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

/// Domains of the traffic.
const DOMAINS: usize = 24;
/// Zipf exponent of the popularity that all domains share.
const SHARED_ZIPF: f32 = 0.5;
/// How much a domain raises or lowers an expert: standard deviation of the logarithm.
const DOMAIN_SPREAD: f32 = 0.9;
/// The same for a request inside its domain.
const REQUEST_SPREAD: f32 = 0.5;
/// Share of requests that blend two domains.
const BLENDED: f64 = 0.15;
/// Tokens generated for each request, as in ELDR's calibration.
const GENERATED_TOKENS: u32 = 128;

/// Traffic of one model.
pub(crate) struct Traffic {
    geometry: Geometry,
    seed: u64,
    /// Logarithms of expert weights, [domains, L x E].
    domains: Vec<Vec<f32>>,
    vocabulary: text::Vocabulary,
}

/// One request's counts.
pub(crate) struct Request {
    /// Over the prompt's tokens.
    pub(crate) prefill: ActivationCounts,
    /// Over the generated tokens.
    pub(crate) decode: ActivationCounts,
}

impl Traffic {
    /// The same traffic for the same geometry and seed.
    pub(crate) fn new(geometry: Geometry, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut shared = Vec::with_capacity(geometry.cells());
        for _ in 0..geometry.layers {
            let mut ranks: Vec<f32> = (1..=geometry.experts).map(|rank| rank as f32).collect();
            ranks.shuffle(&mut rng);
            shared.extend(ranks.iter().map(|rank| -SHARED_ZIPF * rank.ln()));
        }
        let domains = (0..DOMAINS)
            .map(|_| shared.iter().map(|s| s + DOMAIN_SPREAD * normal(&mut rng)).collect())
            .collect();
        Self {
            geometry,
            seed,
            domains,
            vocabulary: text::Vocabulary::new(DOMAINS, seed),
        }
    }

    /// Prompt of a request, of its own domain, cut to this many bytes.
    pub(crate) fn text(&self, number: usize, bytes: usize) -> Vec<u8> {
        let domain = draw_domain(&mut self.rng(number));
        let mut rng = self.rng(number ^ (1 << 40));
        self.vocabulary.text(domain, bytes, &mut rng)
    }

    /// Requests `first..first + number`; each depends on its number only.
    pub(crate) fn requests(&self, first: usize, number: usize) -> anyhow::Result<Vec<Request>> {
        (first..first + number)
            .into_par_iter()
            .map(|i| self.request(i))
            .collect()
    }

    /// The same as samples that a calibration would have collected.
    pub(crate) fn samples(&self, number: usize) -> anyhow::Result<Vec<Sample>> {
        let fingerprint = Fingerprint::new("synthetic", self.geometry);
        let requests = self.requests(0, number)?;
        let sample = |request: Request| Sample {
            prompt_tokens: request.prefill.tokens(),
            generated_tokens: request.decode.tokens(),
            prefill_counts: Some(request.prefill),
            decode_counts: Some(request.decode),
            ..Sample::new(fingerprint.clone())
        };
        Ok(requests.into_iter().map(sample).collect())
    }

    /// Each request's own stretch of chance.
    fn rng(&self, number: usize) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(self.seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn request(&self, number: usize) -> anyhow::Result<Request> {
        let mut rng = self.rng(number);
        let domain = draw_domain(&mut rng);
        let other = rng.gen_bool(BLENDED).then(|| draw_domain(&mut rng));
        // 32 to 1024 prompt tokens, even over the logarithm.
        let prompt_tokens = (32.0 * 32.0f64.powf(rng.gen_range(0.0..1.0))) as u32;
        let frequencies = self.frequencies(domain, other, &mut rng);
        let count = |tokens: u32, rng: &mut Xoshiro256PlusPlus| {
            let cells = frequencies.iter().map(|p| binomial(tokens, *p, rng)).collect();
            ActivationCounts::from_cells(&self.geometry, cells, u64::from(tokens))
        };
        Ok(Request {
            prefill: count(prompt_tokens, &mut rng)?,
            decode: count(GENERATED_TOKENS, &mut rng)?,
        })
    }

    /// Chance that a token chooses each expert: top-k a layer in the sum, at most 1 each.
    fn frequencies(&self, domain: usize, other: Option<usize>, rng: &mut Xoshiro256PlusPlus) -> Vec<f32> {
        let own = &self.domains[domain];
        let mut weights: Vec<f32> = match other {
            Some(other) => own
                .iter()
                .zip(&self.domains[other])
                .map(|(a, b)| f32::midpoint(a.exp(), b.exp()))
                .collect(),
            None => own.iter().map(|w| w.exp()).collect(),
        };
        for weight in &mut weights {
            *weight *= (REQUEST_SPREAD * normal(rng)).exp();
        }
        for layer in weights.chunks_exact_mut(self.geometry.experts) {
            let scale = self.geometry.top_k as f32 / layer.iter().sum::<f32>();
            for weight in layer.iter_mut() {
                *weight = (*weight * scale).min(1.0);
            }
        }
        weights
    }
}

/// Domain d has a share of traffic proportional to 1 / sqrt(d + 1).
fn draw_domain(rng: &mut Xoshiro256PlusPlus) -> usize {
    let u: f64 = rng.gen_range(0.0..1.0);
    ((u * u * DOMAINS as f64) as usize).min(DOMAINS - 1)
}

/// Close to the normal distribution and cheap: set bits of 64 random ones.
fn normal(rng: &mut Xoshiro256PlusPlus) -> f32 {
    (rng.r#gen::<u64>().count_ones() as f32 - 32.0 + rng.gen_range(-0.5f32..0.5)) / 4.0
}

/// Close to the binomial distribution and cheap: its mean and variance, rounded by chance.
fn binomial(tokens: u32, chance: f32, rng: &mut Xoshiro256PlusPlus) -> u32 {
    let mean = tokens as f32 * chance;
    let value = if mean < 4.0 {
        poisson(mean, rng)
    } else {
        mean + (mean * (1.0 - chance)).sqrt() * normal(rng) + rng.gen_range(0.0f32..1.0)
    };
    (value.max(0.0) as u32).min(tokens)
}

/// Knuth's product of uniforms, for small means.
fn poisson(mean: f32, rng: &mut Xoshiro256PlusPlus) -> f32 {
    let limit = (-mean).exp();
    let (mut product, mut events) = (rng.gen_range(0.0f32..1.0), 0.0);
    while product > limit {
        product *= rng.gen_range(0.0f32..1.0);
        events += 1.0;
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_repeat_and_have_structure() {
        let geometry = Geometry::new(4, 32, 4).unwrap();
        let traffic = Traffic::new(geometry, 7);
        let (once, again) = (traffic.requests(0, 300).unwrap(), traffic.requests(100, 1).unwrap());
        assert_eq!(once[100].prefill, again[0].prefill);
        // About top-k picks a token and layer, though each cell is drawn by itself.
        for request in &once {
            let picks: u32 = request.decode.cells().iter().sum();
            let expected = 128.0 * 4.0 * 4.0;
            assert!((f64::from(picks) / expected - 1.0).abs() < 0.2, "{picks} picks");
        }
    }
}
