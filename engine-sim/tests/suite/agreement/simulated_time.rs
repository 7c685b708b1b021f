//! The engine on a simulated clock: every request's times equal the simulator's to the nanosecond.

use std::sync::Arc;
use std::time::Duration;

use coterie_engine_sim::engine::{
    Assets, Clock, Engine, EngineOptions, KvIntent, Limits, SimStats, StepLaw, Submission,
};
use coterie_engine_sim::fleet::simulate::nanos;
use coterie_engine_sim::model::{Model, Sampling};
use coterie_engine_sim::recording::{Continuation, RecordingIndex, Script};
use coterie_engine_sim::tokenizer::TextCodec;
use coterie_locality::policy::{LeastLoaded, RoundRobin};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;

use super::super::common::{folder, recording};
use super::clock::{EventClock, Plan, Stream};
use super::{NO_PREFILL, Simulated, simulated, step_law};

fn assets() -> Assets {
    let folder = folder("models/tiny-moe");
    let codec = Arc::new(TextCodec::load(&folder).unwrap());
    let index = RecordingIndex::new(recording(), &codec);
    Assets {
        model: Arc::new(Model::load(&folder).unwrap()),
        codec,
        script: Some(Script::Recorded(Arc::new(index))),
    }
}

fn options(max_batch: usize, step_law: StepLaw) -> EngineOptions {
    EngineOptions {
        engine_id: "agreement".to_owned(),
        capture: false,
        max_num_seqs: max_batch,
        max_num_batched_tokens: 1 << 20,
        kv_blocks: 1 << 14,
        block_size: 16,
        lease: Duration::from_secs(480),
        pull_timeout: Duration::from_secs(10),
        side_channel: None,
        step_law,
        prefill_law: NO_PREFILL,
    }
}

/// Gives these requests to an engine at their times. Returns the times of each one's tokens without the prefill's, and what the engine counted.
async fn engine(
    simulated: &Simulated,
    requests: &[usize],
    assets: Assets,
    max_batch: usize,
) -> (Vec<Vec<Duration>>, SimStats) {
    let clock = Arc::new(EventClock::default());
    let recording = recording();
    let engine = Engine::start(
        assets,
        options(max_batch, step_law()),
        Arc::clone(&clock) as Arc<dyn Clock>,
    )
    .unwrap();
    let (done, answer) = oneshot::channel();
    let mut plan = Plan {
        engine: engine.handle(),
        due: std::collections::VecDeque::new(),
        streams: Vec::new(),
        done,
    };
    for index in requests {
        let arrival = simulated.arrivals[*index];
        let (events, receiver) = unbounded_channel();
        let at = Duration::from_nanos(nanos(arrival.time_s));
        plan.streams.push(Stream {
            events: receiver,
            times: Vec::new(),
            ended: false,
        });
        let submission = Submission {
            id: format!("request-{index}"),
            prompt: recording.prompt(arrival.request).to_vec(),
            recorded: Some(Continuation {
                request: arrival.request,
                offset: 0,
            }),
            sampling: Sampling {
                temperature: 0.0,
                top_p: 1.0,
                top_k: 0,
                seed: 0,
            },
            limits: Limits {
                max_tokens: arrival.output_tokens as usize + 1,
                min_tokens: 0,
                stop: Vec::new(),
                stop_token_ids: Vec::new(),
                include_stop: false,
                ignore_eos: true,
            },
            logprobs: None,
            kv: KvIntent::Local,
            arrived: at,
            events,
        };
        plan.due.push_back((at, submission));
    }
    clock.follow(plan);
    // Any order wakes the engine.
    engine.handle().snapshot().await.unwrap();
    let mut times = answer.await.unwrap();
    for tokens in &mut times {
        tokens.remove(0);
    }
    let stats = engine.handle().snapshot().await.unwrap().sim;
    engine.stop();
    (times, stats)
}

async fn agree(simulated: &Simulated, workers: u32, max_batch: usize) {
    let assets = assets();
    let (mut steps, mut batch, mut distinct) = (0, 0, 0);
    for worker in 0..workers {
        let requests = simulated.on_worker(worker);
        assert!(requests.len() > 20, "worker {worker} has {} requests", requests.len());
        let (times, stats) = engine(simulated, &requests, assets.clone(), max_batch).await;
        for (index, times) in requests.iter().zip(&times) {
            let journey = &simulated.outcome.journeys[*index];
            assert_eq!(times.len(), journey.tokens as usize, "request {index}");
            let at = |time: Option<&Duration>| time.map(|t| t.as_nanos() as u64);
            assert_eq!(at(times.first()), journey.first, "request {index}: first token");
            assert_eq!(at(times.last()), Some(journey.ended), "request {index}: last token");
        }
        steps += stats.steps;
        batch += stats.batch_sum;
        distinct += stats.distinct_sum.iter().sum::<u64>();
        assert_eq!(stats.overrun_steps, 0);
    }
    let tally = &simulated.outcome.tally;
    assert_eq!((steps, batch, distinct), (tally.steps, tally.batch, tally.distinct));
}

#[tokio::test]
async fn workers_in_turn_agree_to_the_nanosecond() {
    let simulated = simulated(3, 1024, 20.0, 20.0, Box::new(RoundRobin::default()));
    assert!(simulated.mean_batch() > 3.0, "{}", simulated.mean_batch());
    agree(&simulated, 3, 1024).await;
}

#[tokio::test]
async fn least_loaded_workers_agree_to_the_nanosecond() {
    let simulated = simulated(2, 1024, 30.0, 15.0, Box::new(LeastLoaded));
    agree(&simulated, 2, 1024).await;
}

#[tokio::test]
async fn a_worker_with_a_queue_agrees_to_the_nanosecond() {
    let simulated = simulated(1, 4, 12.0, 20.0, Box::new(RoundRobin::default()));
    assert!(
        simulated.mean_batch() > 3.8,
        "most steps are full: {}",
        simulated.mean_batch()
    );
    agree(&simulated, 1, 4).await;
}
