//! Recordings from samples: counts of prompt and generated tokens, from which choices are drawn.

use std::sync::Arc;

use coterie_locality::sample::{SampleError, SampleReader};
use coterie_locality::{ActivationCounts, Geometry, Sample};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Choices, MAX_REQUESTS, MAX_STEPS, Recording, RequestGates};

pub(super) fn from_container(bytes: &[u8], seed: u64) -> Result<Recording, String> {
    let reader = SampleReader::new(bytes).map_err(|e| e.to_string())?;
    from_samples(reader, seed)
}

/// Takes the samples that have counts of both prompt and generated tokens, and leaves the others.
pub(super) fn from_samples(
    samples: impl Iterator<Item = Result<Sample, SampleError>>,
    seed: u64,
) -> Result<Recording, String> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut requests, mut read, mut model) = (Vec::new(), 0usize, None);
    for sample in samples {
        let sample = sample.map_err(|e| e.to_string())?;
        read += 1;
        if read > MAX_REQUESTS {
            return Err(format!("it has more than {MAX_REQUESTS} samples"));
        }
        let geometry = sample.fingerprint.geometry;
        if *model.get_or_insert(geometry) != geometry {
            return Err(format!(
                "sample {read} is of another model geometry than those before it"
            ));
        }
        let (Some(prefill), Some(decode)) = (sample.prefill_counts, sample.decode_counts) else {
            continue;
        };
        let fails = |e: &dyn std::fmt::Display| format!("sample {read}: {e}");
        for counts in [&prefill, &decode] {
            counts.check_conservation().map_err(|e| fails(&e))?;
        }
        requests.push(Arc::new(RequestGates {
            prompt_tokens: u32::try_from(prefill.tokens()).map_err(|e| fails(&e))?,
            decode: draw(&decode, &mut rng).map_err(|e| fails(&e))?,
            prefill,
            domains: Vec::new(),
            ngrams: sample.ngrams,
            text: None,
        }));
    }
    let geometry = model.ok_or("it has no samples")?;
    if requests.is_empty() {
        return Err(format!(
            "none of its {read} samples has counts of prompt and generated tokens: replay them first"
        ));
    }
    Ok(Recording {
        geometry,
        domain_names: Vec::new(),
        requests,
    })
}

/// Choices whose counts are exactly these: in each layer, experts in random order are dealt to the tokens in random order, one after the
/// other. No token gets an expert twice, since no expert was chosen more often than there are tokens. What is lost is which experts went
/// together and what came after what.
fn draw(counts: &ActivationCounts, rng: &mut Xoshiro256PlusPlus) -> Result<Choices, String> {
    let geometry: Geometry = *counts.geometry();
    let tokens = usize::try_from(counts.tokens()).unwrap_or(usize::MAX);
    if tokens == 0 || tokens > MAX_STEPS {
        return Err(format!("{tokens} generated tokens: it needs 1 to {MAX_STEPS}"));
    }
    let (mut order, mut experts) = (
        (0..tokens).collect::<Vec<_>>(),
        (0..geometry.experts).collect::<Vec<_>>(),
    );
    let mut ids = vec![0u16; tokens * geometry.ids_per_token()];
    for layer in 0..geometry.layers {
        order.shuffle(rng);
        experts.shuffle(rng);
        let counts = counts.layer(layer);
        if counts.iter().any(|c| *c as usize > tokens) {
            return Err(format!(
                "layer {layer}: an expert was chosen more often than there are tokens"
            ));
        }
        let dealt = experts
            .iter()
            .flat_map(|e| std::iter::repeat_n(*e as u16, counts[*e] as usize));
        for (i, expert) in dealt.enumerate() {
            let (token, slot) = (order[i % tokens], i / tokens);
            ids[token * geometry.ids_per_token() + layer * geometry.top_k + slot] = expert;
        }
    }
    Choices::new(geometry, &ids).map_err(|e| e.to_string())
}
