//! Arrivals for a comparison: Poisson, over all judged requests in shuffled laps, so that no request meets itself in a batch.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::fleet::gates::Recording;
use crate::fleet::simulate::{Activity, Arrival, StepTime, StepWork};

/// Batches drawn to learn how distinct experts grow with the batch.
const DRAWS: usize = 200;

/// `count` Poisson arrivals at `rate` a second, each generating `output` tokens (0: as many as are recorded).
pub fn laps(recording: &Recording, rate: f64, count: usize, output: u32, seed: u64) -> Vec<Arrival> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut order: Vec<u32> = (0..recording.len() as u32).collect();
    let mut now = 0.0;
    let mut next = order.len();
    (0..count)
        .filter_map(|_| {
            now += -(1.0 - rng.r#gen::<f64>()).ln() / rate;
            if next >= order.len() {
                order.shuffle(&mut rng);
                next = 0;
            }
            let gates = *order.get(next)?;
            next += 1;
            let request = recording.requests.get(gates as usize)?;
            Some(Arrival {
                time_s: now,
                gates,
                prompt_tokens: request.prompt_tokens,
                output_tokens: if output == 0 {
                    request.decode.tokens() as u32
                } else {
                    output
                },
                session: None,
            })
        })
        .collect()
}

/// Arrivals a second at which `workers` workers that are loaded evenly and blindly run `batch` requests each: by Little's law, from the
/// step time of random batches of that size.
pub fn rate_for_batch(
    activity: &Activity,
    step_time: StepTime<'_>,
    workers: usize,
    batch: f64,
    output: u32,
    seed: u64,
) -> f64 {
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
        sum += step_time(&StepWork {
            distinct,
            busiest_rank: distinct,
            batch: size,
            ..StepWork::default()
        });
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
            let mut seen: Vec<u32> = lap.iter().map(|a| a.gates).collect();
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
        let rate = rate_for_batch(&activity, &|w| 0.01 * f64::from(w.batch), 4, 5.0, 10, 1);
        assert!((rate - 5.0 * 4.0 / (10.0 * 0.05)).abs() < 1e-9);
    }
}
