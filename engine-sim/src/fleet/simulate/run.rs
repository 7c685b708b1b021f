//! The loop: take the next event, let it happen, schedule what follows.

mod changes;
mod exchange;
mod prefilling;

use std::collections::HashMap;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::activity::Activity;
use super::decode::{DecodeWorker, Life, Running};
use super::events::{Agenda, Event, Nanos, nanos, seconds};
use super::journey::{End, Journey};
use super::options::{Choice, FleetOptions};
use super::prefill::{PrefillWorker, Prompt};
use super::router::{Router, Steering};
use super::tally::Tally;
use super::view::Visibility;
use crate::fleet::gates::Recording;
use crate::fleet::law::DecodeLaw;
use crate::fleet::placement::StepCost;
use crate::fleet::workload::Arrival;

/// Steps of a worker behind each observation that routers get of its time per token.
const OBSERVED_STEPS: u32 = 8;

/// Everything that does not change during a run.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The fleet and its script.
    pub options: &'a FleetOptions,
    /// Gates of the requests.
    pub activity: &'a Activity,
    /// Time of a decode step.
    pub law: &'a DecodeLaw,
    /// Expert-parallel ranks of every decode worker, and the recording behind `activity`.
    pub ranks: Option<(&'a Recording, &'a StepCost)>,
    /// Seed of routers' chances and of the requests' spread over routers.
    pub seed: u64,
}

/// What a run leaves.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Every request, in order of arrival.
    pub journeys: Vec<Journey>,
    /// Indices of the measured ones.
    pub measured: std::ops::Range<usize>,
    /// Sums.
    pub tally: Tally,
    /// Layers of the model, to turn sums of distinct experts into means per layer.
    pub layers: usize,
    /// When the last event happened.
    pub end: Nanos,
}

/// Runs `arrivals` (in order of time) through the fleet until every request has ended. One router per entry of `routers`.
pub fn simulate(setup: &Setup<'_>, routers: Vec<Steering>, arrivals: &[Arrival]) -> Outcome {
    let mut fleet = Fleet::new(setup, routers, arrivals);
    while let Some((now, event)) = fleet.agenda.next() {
        fleet.now = now;
        fleet.happens(event);
        if fleet.open == 0 && fleet.next_arrival == arrivals.len() {
            break;
        }
    }
    fleet.tally.in_decode(fleet.now, 0);
    fleet.tally.refits = fleet.routers.iter().map(|r| u64::from(r.fits())).sum();
    Outcome {
        measured: fleet.measured(),
        journeys: fleet.journeys,
        tally: fleet.tally,
        layers: setup.activity.geometry().layers,
        end: fleet.now,
    }
}

struct Fleet<'a> {
    setup: &'a Setup<'a>,
    arrivals: &'a [Arrival],
    next_arrival: usize,
    now: Nanos,
    agenda: Agenda,
    journeys: Vec<Journey>,
    /// Requests that came in and have not ended.
    open: usize,
    prefill: Vec<PrefillWorker>,
    decode: Vec<DecodeWorker>,
    live: Vec<u32>,
    routers: Vec<Router>,
    tally: Tally,
    /// Prefill worker that holds a conversation's prefix.
    prefixes: HashMap<u64, u32>,
    ranks: Option<StepCost>,
    rng: Xoshiro256PlusPlus,
    done: Vec<Prompt>,
    finished: Vec<(u32, bool)>,
    observing: Vec<(u32, f64)>,
}

impl<'a> Fleet<'a> {
    fn new(setup: &'a Setup<'a>, routers: Vec<Steering>, arrivals: &'a [Arrival]) -> Self {
        let options = setup.options;
        let mut seeds = Xoshiro256PlusPlus::seed_from_u64(setup.seed);
        let mut routers: Vec<Router> = routers
            .into_iter()
            .map(|steering| {
                seeds.jump();
                Router::new(steering, seeds.clone())
            })
            .collect();
        let workers = options.decode_workers;
        let live: Vec<u32> = (0..workers as u32).collect();
        for router in &mut routers {
            router.workers(&live, workers);
        }
        let mut agenda = Agenda::default();
        for (line, entry) in options.script.iter().enumerate() {
            agenda.at(nanos(entry.at_s), Event::Script(line as u32));
        }
        if let Some(first) = arrivals.first() {
            agenda.at(nanos(first.time_s), Event::Arrival(0));
        }
        match options.visibility {
            Visibility::OwnOnly => {}
            Visibility::Reports { .. } => agenda.at(0, Event::Scrape),
            Visibility::Exchange { .. } => agenda.at(0, Event::Exchange),
        }
        let row_words = setup.activity.row_words();
        Self {
            setup,
            arrivals,
            next_arrival: 0,
            now: 0,
            agenda,
            journeys: Vec::with_capacity(arrivals.len()),
            open: 0,
            prefill: (0..options.prefill.map_or(0, |p| p.workers))
                .map(|_| PrefillWorker::default())
                .collect(),
            decode: (0..workers).map(|_| DecodeWorker::new(Life::Live, row_words)).collect(),
            live,
            routers,
            tally: Tally {
                request_s: vec![0.0; workers],
                ..Tally::default()
            },
            prefixes: HashMap::new(),
            ranks: setup.ranks.map(|(_, cost)| cost.clone()),
            rng: Xoshiro256PlusPlus::seed_from_u64(setup.seed ^ 0x0F1E_E700),
            done: Vec::new(),
            finished: Vec::new(),
            observing: vec![(0, 0.0); workers],
        }
    }

    /// Indices of the measured requests: all but those at the start and at the end.
    fn measured(&self) -> std::ops::Range<usize> {
        let (first, last) = self.setup.options.unmeasured;
        let end = self.arrivals.len().saturating_sub(last);
        first.min(end)..end
    }

    /// Whether steps count now: between the arrivals of the first and the last measured request.
    fn in_measured_time(&self) -> bool {
        let measured = self.measured();
        self.next_arrival > measured.start && self.next_arrival <= measured.end
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Arrival(index) => self.arrival(index as usize),
            Event::PrefillEnds(worker) => self.prefill_ends(worker),
            Event::HandedOff { request, attempt } => self.handed_off(request, attempt),
            Event::StepEnds { worker, incarnation } => {
                if self.decode[worker as usize].incarnation == incarnation {
                    self.step_ends(worker);
                }
            }
            Event::Scrape => self.scrape(),
            Event::Exchange => self.exchange(),
            Event::Script(line) => {
                if let Some(line) = self.setup.options.script.get(line as usize) {
                    self.change(line.change);
                }
            }
            Event::Loaded(worker) => {
                let worker = &mut self.decode[worker as usize];
                if worker.life == Life::Starting {
                    worker.life = Life::Live;
                    self.membership();
                }
            }
        }
    }

    fn arrival(&mut self, index: usize) {
        let arrival = self.arrivals[index];
        self.next_arrival = index + 1;
        if let Some(next) = self.arrivals.get(index + 1) {
            let at = nanos(next.time_s).max(self.now);
            self.agenda.at(at, Event::Arrival(index as u32 + 1));
        }
        let router = self.rng.gen_range(0..self.routers.len().max(1)) as u32;
        self.journeys.push(Journey::new(arrival, self.now, router));
        self.open += 1;
        self.start(index as u32);
    }

    /// Begins an attempt of a request.
    fn start(&mut self, request: u32) {
        if self.prefill.is_empty() {
            if self.place(request) {
                self.hand_off(request);
            }
            return;
        }
        if self.setup.options.choice == Choice::AtArrival && !self.place(request) {
            return;
        }
        let journey = &self.journeys[request as usize];
        let (arrival, attempt) = (journey.arrival, journey.attempt);
        let prefix = arrival.shared_prefix_tokens;
        let cached = self.prefixes.get(&arrival.session).filter(|_| prefix > 0);
        let least = || {
            let loads = self.prefill.iter().map(PrefillWorker::requests).enumerate();
            loads.min_by_key(|(w, n)| (*n, *w)).map_or(0, |(w, _)| w as u32)
        };
        let (worker, prefix) = cached.map_or_else(|| (least(), 0), |worker| (*worker, prefix));
        self.prefixes.insert(arrival.session, worker);
        let tokens = arrival.prompt_tokens.saturating_sub(prefix).max(1);
        self.tally.prefill_tokens += u64::from(tokens);
        let prompt = Prompt {
            request,
            attempt,
            tokens,
        };
        self.prefill[worker as usize].push(prompt);
        if !self.prefill[worker as usize].is_busy() {
            self.begin_prefill(worker);
        }
    }

    /// Chooses a decode worker and reserves a place; `false`: there is none, and the request has ended.
    fn place(&mut self, request: u32) -> bool {
        let journey = &mut self.journeys[request as usize];
        self.tally.decisions += 1;
        let router = self.routers.get_mut(journey.router as usize);
        let visibility = &self.setup.options.visibility;
        let chosen = router.and_then(|r| r.choose(journey.arrival.request as u32, self.now, visibility, &self.live));
        let Some(worker) = chosen else {
            self.end(request, End::Refused);
            return false;
        };
        journey.worker = Some(worker);
        journey.placed = self.now;
        journey.held = true;
        true
    }

    fn hand_off(&mut self, request: u32) {
        let options = self.setup.options;
        let journey = &mut self.journeys[request as usize];
        let attempt = journey.attempt;
        if let (Some(worker), false) = (journey.worker, journey.dispatched) {
            journey.dispatched = true;
            self.routers[journey.router as usize].view.dispatched[worker as usize] += 1;
        }
        if self.prefill.is_empty() {
            self.handed_off(request, attempt);
        } else {
            let tokens = f64::from(journey.arrival.prompt_tokens);
            let takes = options.transfer.seconds(tokens);
            self.agenda
                .at(self.now + nanos(takes), Event::HandedOff { request, attempt });
        }
    }

    fn handed_off(&mut self, request: u32, attempt: u32) {
        let journey = &self.journeys[request as usize];
        let (Some(worker), true) = (
            journey.worker,
            journey.attempt == attempt && journey.end == End::Pending,
        ) else {
            return;
        };
        let arrival = journey.arrival;
        if self.decode[worker as usize].life == Life::Gone {
            // The connection is refused: nothing was lost but the prefill.
            self.again(request);
            return;
        }
        self.decode[worker as usize].waiting.push_back(Running {
            request,
            gates: arrival.request as u32,
            context: arrival.prompt_tokens + journey.tokens,
            generated: journey.tokens,
            wanted: arrival.output_tokens.max(1),
            recompute: false,
        });
        self.tally.in_decode(self.now, 1);
        if !self.decode[worker as usize].stepping {
            self.begin_step(worker);
        }
    }

    fn begin_step(&mut self, worker: u32) {
        let setup = self.setup;
        let decode = &mut self.decode[worker as usize];
        let ranks = setup.ranks.map(|(recording, _)| recording).zip(self.ranks.as_mut());
        let Some((work, preempted)) = decode.begin(setup.activity, ranks, &setup.options.decode) else {
            return;
        };
        self.tally.preempted += u64::from(preempted);
        decode.stepping = true;
        decode.step_s = work.seconds(setup.law) + work.recompute_s;
        // At least a nanosecond: time must pass, whatever the law says.
        let ends = self.now + nanos(decode.step_s).max(1);
        let incarnation = decode.incarnation;
        self.agenda.at(ends, Event::StepEnds { worker, incarnation });
    }

    fn step_ends(&mut self, worker: u32) {
        let measured = self.in_measured_time();
        let decode = &mut self.decode[worker as usize];
        self.tally.step(worker as usize, &decode.work, decode.step_s, measured);
        let step_s = decode.step_s;
        let mut finished = std::mem::take(&mut self.finished);
        let (journeys, now) = (&mut self.journeys, self.now);
        decode.end(|job, last| {
            let journey = &mut journeys[job.request as usize];
            journey.tokens = job.generated;
            journey.first.get_or_insert(now);
            if last {
                finished.push((job.request, last));
            }
        });
        for (request, _) in finished.drain(..) {
            self.tally.in_decode(self.now, -1);
            self.end(request, End::Finished);
        }
        self.finished = finished;
        let (steps, sum) = &mut self.observing[worker as usize];
        *steps += 1;
        *sum += step_s;
        if *steps == OBSERVED_STEPS {
            let mean = *sum / f64::from(OBSERVED_STEPS);
            (*steps, *sum) = (0, 0.0);
            for router in &mut self.routers {
                router.observed(worker, self.now, &self.setup.options.visibility, mean);
            }
        }
        self.begin_step(worker);
    }

    fn end(&mut self, request: u32, end: End) {
        self.release(request);
        let journey = &mut self.journeys[request as usize];
        journey.end = end;
        journey.ended = self.now;
        self.open -= 1;
    }

    /// Gives the request's place back to its router.
    fn release(&mut self, request: u32) {
        let journey = &mut self.journeys[request as usize];
        if let (true, Some(worker)) = (journey.held, journey.worker) {
            let router = &mut self.routers[journey.router as usize];
            router.leaves(journey.arrival.request as u32, worker, journey.dispatched, self.now);
            (journey.held, journey.dispatched) = (false, false);
        }
    }
}

impl Outcome {
    /// Seconds from the first to the last arrival that is measured.
    pub fn measured_s(&self) -> f64 {
        let at = |i: usize| self.journeys.get(i).map_or(0, |j| j.at);
        seconds(at(self.measured.end.saturating_sub(1)).saturating_sub(at(self.measured.start)))
    }
}
