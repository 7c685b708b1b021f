//! From logits to a token. What is drawn depends only on logits, seed and the token's index in the answer, so one worker
//! and a prefill-decode pair draw the same.

use rand::Rng;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// How tokens are chosen.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// 0 chooses the likeliest token.
    pub temperature: f32,
    /// Smallest set of tokens whose probabilities reach this; 1 switches it off.
    pub top_p: f32,
    /// Only so many likeliest tokens; 0 switches it off.
    pub top_k: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// Log-probabilities of one generated token and its strongest rivals.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenLogprobs {
    /// Of the chosen token.
    pub chosen: f32,
    /// Likeliest tokens, best first.
    pub top: Vec<(u32, f32)>,
}

/// Chooses the token with index `index` of an answer. Tokens in `banned` are never chosen.
pub fn choose(logits: &[f32], sampling: &Sampling, index: usize, banned: &[u32]) -> u32 {
    let allowed = |id: usize| banned.is_empty() || !banned.contains(&(id as u32));
    if sampling.temperature < 1e-5 {
        let mut best = (0, f32::NEG_INFINITY);
        for (id, logit) in logits.iter().enumerate() {
            if *logit > best.1 && allowed(id) {
                best = (id, *logit);
            }
        }
        return best.0 as u32;
    }
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut weights: Vec<(u32, f64)> = (logits.iter().enumerate())
        .filter(|(id, _)| allowed(*id))
        .map(|(id, logit)| (id as u32, f64::from((logit - most) / sampling.temperature).exp()))
        .collect();
    if sampling.top_k > 0 || sampling.top_p < 1.0 {
        weights.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        if sampling.top_k > 0 {
            weights.truncate(sampling.top_k);
        }
        let goal = f64::from(sampling.top_p) * weights.iter().map(|w| w.1).sum::<f64>();
        let mut reached = 0.0;
        let enough = weights.iter().position(|w| {
            reached += w.1;
            reached >= goal
        });
        weights.truncate(enough.map_or(weights.len(), |last| last + 1));
    }
    let total: f64 = weights.iter().map(|w| w.1).sum();
    let mut left = draw(sampling.seed, index) * total;
    for (id, weight) in &weights {
        left -= weight;
        if left < 0.0 {
            return *id;
        }
    }
    weights.last().map_or(0, |w| w.0)
}

/// Log-probabilities of `token` and of the `top` likeliest tokens.
pub fn logprobs(logits: &[f32], token: u32, top: usize) -> TokenLogprobs {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|l| f64::from(l - most).exp()).sum();
    let norm = most + sum.ln() as f32;
    let mut order: Vec<u32> = (0..logits.len() as u32).collect();
    order.sort_by(|a, b| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b)));
    let of = |id: u32| logits.get(id as usize).map_or(f32::NEG_INFINITY, |l| l - norm);
    TokenLogprobs {
        chosen: of(token),
        top: order.into_iter().take(top).map(|id| (id, of(id))).collect(),
    }
}

fn draw(seed: u64, index: usize) -> f64 {
    let mixed = seed ^ (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Xoshiro256PlusPlus::seed_from_u64(mixed).r#gen()
}
