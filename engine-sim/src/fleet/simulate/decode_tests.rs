//! Batches, KV and ranks of one worker.

use super::super::testing::recording;
use super::*;
use crate::fleet::placement::{Copies, Placement};

fn activity() -> Activity {
    Activity::new(&recording(
        (2, 8, 2),
        &[&[0, 1, 0, 1, 0, 1, 2, 3], &[1, 2, 4, 5, 6, 7, 2, 3]],
    ))
}

fn job(request: u32, context: u32, wanted: u32) -> Running {
    Running {
        request,
        gates: request % 2,
        context,
        generated: 0,
        wanted,
        recompute: false,
    }
}

fn worker(jobs: &[Running]) -> DecodeWorker {
    let mut worker = DecodeWorker::new(Life::Live, activity().row_words());
    worker.waiting.extend(jobs);
    worker
}

#[test]
fn a_step_counts_distinct_experts_of_its_batch() {
    let (activity, mut worker) = (activity(), worker(&[job(0, 10, 2), job(1, 20, 1)]));
    let (work, preempted) = worker.begin(&activity, None, &DecodeOptions::default()).unwrap();
    assert_eq!(
        (work.distinct, work.batch, work.kv_tokens, preempted),
        (3 + 4, 2, 30, 0)
    );
    assert_eq!(worker.union(), [0b111, 0b11_0011]);
    let mut finished = Vec::new();
    worker.end(|job, done| finished.push((job.request, done)));
    assert_eq!(finished, [(0, false), (1, true)]);
    assert_eq!((worker.kv_used, worker.requests()), (11, 1));
    let (work, _) = worker.begin(&activity, None, &DecodeOptions::default()).unwrap();
    assert_eq!((work.distinct, work.batch), (4, 1));
    worker.end(|_, _| ());
    assert_eq!(worker.kv_used, 0);
    assert!(worker.begin(&activity, None, &DecodeOptions::default()).is_none());
}

#[test]
fn full_kv_preempts_the_newest_and_recomputes_it_later() {
    let options = DecodeOptions {
        kv_tokens: 23,
        recompute_per_token_s: 0.5,
        ..DecodeOptions::default()
    };
    let (activity, mut worker) = (activity(), worker(&[job(0, 10, 3), job(1, 10, 3)]));
    let (work, preempted) = worker.begin(&activity, None, &options).unwrap();
    assert_eq!((work.batch, preempted), (2, 0));
    worker.end(|_, _| ());
    let (work, preempted) = worker.begin(&activity, None, &options).unwrap();
    assert_eq!((work.batch, preempted, worker.waiting.len()), (1, 1, 1));
    worker.end(|_, _| ());
    worker.begin(&activity, None, &options).unwrap();
    worker.end(|_, _| ());
    let (work, _) = worker.begin(&activity, None, &options).unwrap();
    assert_eq!((work.batch, work.recompute_s), (1, 5.5));
    assert_eq!(worker.running[0].generated, 1, "tokens already sent stay sent");
    worker.end(|_, _| ());
    worker.begin(&activity, None, &options).unwrap();
    worker.end(|_, _| ());
    assert_eq!((worker.kv_used, worker.requests()), (0, 0));
}

#[test]
fn a_request_larger_than_the_cache_runs_alone() {
    let options = DecodeOptions {
        kv_tokens: 5,
        ..DecodeOptions::default()
    };
    let mut worker = worker(&[job(0, 10, 1), job(1, 10, 1)]);
    let (work, _) = worker.begin(&activity(), None, &options).unwrap();
    assert_eq!(work.batch, 1);
}

#[test]
fn the_slowest_rank_is_counted_per_layer() {
    let recording = recording((2, 8, 2), &[&[0, 1, 0, 1, 0, 1, 2, 3], &[1, 2, 4, 5, 6, 7, 2, 3]]);
    let placement = Placement::linear(recording.geometry, 2, 0).unwrap();
    let mut cost = StepCost::new(&placement, Copies::One);
    let mut worker = worker(&[job(0, 10, 2), job(1, 20, 1)]);
    let ranks = Some((&recording, &mut cost));
    let (work, _) = worker.begin(&activity(), ranks, &DecodeOptions::default()).unwrap();
    assert_eq!((work.distinct, work.busiest_rank), (7, 3 + 2));
}
