//! Arrivals for a comparison: Poisson, over all judged requests in shuffled laps, so that no request meets itself in a batch.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::fleet::gates::Recording;
use crate::fleet::law::DecodeLaw;
use crate::fleet::simulate::{Activity, StepCount};
use crate::fleet::workload::Arrival;

/// Batches drawn to learn how distinct experts grow with the batch.
const DRAWS: usize = 200;
/// Tokens of KV that a request is taken to have.
const CONTEXT: u64 = 200;

/// `count` Poisson arrivals at `rate` a second, each generating `output` tokens (0: as many as are recorded).
pub fn laps(recording: &Recording, rate: f64, count: usize, output: u32, seed: u64) -> Vec<Arrival> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..recording.len()).collect();
    let mut now = 0.0;
    let mut next = order.len();
    (0..count)
        .filter_map(|session| {
            now += -(1.0 - rng.r#gen::<f64>()).ln() / rate;
            if next >= order.len() {
                order.shuffle(&mut rng);
                next = 0;
            }
            let request = *order.get(next)?;
            next += 1;
            let gates = recording.requests.get(request)?;
            Some(Arrival {
                time_s: now,
                request,
                prompt_tokens: gates.prompt_tokens,
                output_tokens: if output == 0 {
                    gates.decode.tokens() as u32
                } else {
                    output
                },
                session: session as u64,
                shared_prefix_tokens: 0,
            })
        })
        .collect()
}

/// Arrivals a second at which `workers` workers that are loaded evenly and blindly run `batch` requests each: by Little's law, from the
/// step time of random batches of that size.
pub fn rate_for_batch(activity: &Activity, law: &DecodeLaw, workers: usize, batch: f64, output: u32, seed: u64) -> f64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let size = (batch.round() as u32).max(1);
    let mut union = vec![0u64; activity.row_words()];
    let mut sum = 0.0;
    for _ in 0..DRAWS {
        union.fill(0);
        for _ in 0..size {
            let request = rng.gen_range(0..activity.len().max(1));
            let row = activity.row(request, rng.gen_range(0..activity.tokens(request)));
            union.iter_mut().zip(row).for_each(|(u, b)| *u |= b);
        }
        let distinct = union.iter().map(|w| w.count_ones()).sum();
        let step = StepCount {
            distinct,
            busiest_rank: distinct,
            batch: size,
            kv_tokens: u64::from(size) * CONTEXT,
            ..StepCount::default()
        };
        sum += step.seconds(law);
    }
    let step_s = sum / DRAWS as f64;
    batch * workers as f64 / (f64::from(output) * step_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::simulate::testing::recording;

    #[test]
    fn laps_take_every_request_before_any_comes_again() {
        let recording = recording((1, 4, 1), &[&[0], &[1], &[2]]);
        let arrivals = laps(&recording, 10.0, 6000, 0, 1);
        for lap in arrivals.chunks(3) {
            let mut seen: Vec<usize> = lap.iter().map(|a| a.request).collect();
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 2]);
        }
        let mean = arrivals.last().unwrap().time_s / 6000.0;
        assert!((mean - 0.1).abs() < 0.005, "{mean}");
        assert_eq!(arrivals, laps(&recording, 10.0, 6000, 0, 1));
        assert_ne!(arrivals, laps(&recording, 10.0, 6000, 0, 2));
    }

    #[test]
    fn rates_follow_littles_law() {
        let activity = Activity::new(&recording((1, 4, 1), &[&[0], &[1]]));
        let rate = rate_for_batch(&activity, &DecodeLaw::linear(0.0, 0.0, 0.01), 4, 5.0, 10, 1);
        assert!((rate - 5.0 * 4.0 / (10.0 * 0.05)).abs() < 1e-9);
    }
}
