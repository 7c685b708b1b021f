//! The loop: take the next event, let it happen, schedule what follows.

use std::collections::HashMap;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::activity::Activity;
use super::decode::{DecodeWorker, Life, RankMasks, Running};
use super::events::{Agenda, Event, Nanos, nanos, seconds};
use super::journey::{Arrival, End, Journey};
use super::options::{Change, Choice, FirstToken, FleetOptions, StepTime};
use super::prefill::{PrefillWorker, Prompt};
use super::router::{Router, Steering};
use super::tally::Tally;
use super::view::Visibility;

/// Steps of a worker behind each observation that routers get of its time per token.
const OBSERVED_STEPS: u32 = 8;

/// Everything that does not change during a run.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The fleet and its script.
    pub options: &'a FleetOptions,
    /// Gates of the requests.
    pub activity: &'a Activity,
    /// Seconds of a decode step.
    pub step_time: StepTime<'a>,
    /// Expert-parallel ranks of every decode worker.
    pub ranks: Option<&'a RankMasks>,
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
        let cached = arrival
            .session
            .and_then(|(id, prefix)| Some((*self.prefixes.get(&id)?, prefix)));
        let least = || {
            let loads = self.prefill.iter().map(PrefillWorker::requests).enumerate();
            loads.min_by_key(|(w, n)| (*n, *w)).map_or(0, |(w, _)| w as u32)
        };
        let (worker, prefix) = cached.unwrap_or_else(|| (least(), 0));
        if let Some((id, _)) = arrival.session {
            self.prefixes.insert(id, worker);
        }
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

    fn begin_prefill(&mut self, worker: u32) {
        let Some(options) = &self.setup.options.prefill else {
            return;
        };
        if let Some(takes) = self.prefill[worker as usize].begin(options) {
            self.tally.prefill_steps += 1;
            self.agenda.at(self.now + nanos(takes), Event::PrefillEnds(worker));
        }
    }

    fn prefill_ends(&mut self, worker: u32) {
        let mut done = std::mem::take(&mut self.done);
        self.prefill[worker as usize].end(&mut done);
        for prompt in done.drain(..) {
            let journey = &mut self.journeys[prompt.request as usize];
            if journey.attempt != prompt.attempt || journey.end != End::Pending {
                continue;
            }
            if self.setup.options.first_token == FirstToken::Prefill && journey.first.is_none() {
                journey.first = Some(self.now);
                journey.tokens = 1;
                if journey.arrival.output_tokens <= 1 {
                    self.end(prompt.request, End::Finished);
                    continue;
                }
            }
            if self.journeys[prompt.request as usize].held || self.place(prompt.request) {
                self.hand_off(prompt.request);
            }
        }
        self.done = done;
        self.begin_prefill(worker);
    }

    /// Chooses a decode worker and reserves a place; `false`: there is none, and the request has ended.
    fn place(&mut self, request: u32) -> bool {
        let journey = &mut self.journeys[request as usize];
        self.tally.decisions += 1;
        let router = self.routers.get_mut(journey.router as usize);
        let visibility = &self.setup.options.visibility;
        let chosen = router.and_then(|r| r.choose(journey.arrival.gates, self.now, visibility, &self.live));
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
            let takes = options.hand_off_base_s + options.hand_off_per_token_s * tokens;
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
            gates: arrival.gates,
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
        let Some((work, preempted)) = decode.begin(setup.activity, setup.ranks, &setup.options.decode) else {
            return;
        };
        self.tally.preempted += u64::from(preempted);
        decode.stepping = true;
        decode.step_s = (setup.step_time)(&work) + work.recompute_s;
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
            router.leaves(journey.arrival.gates, worker, journey.dispatched, self.now);
            (journey.held, journey.dispatched) = (false, false);
        }
    }

    /// The worker under a request died: a fresh attempt if nothing was sent to the client yet, else it fails.
    fn again(&mut self, request: u32) {
        let journey = &mut self.journeys[request as usize];
        let by_decode = u64::from(journey.tokens);
        if journey.first.is_some() || journey.attempt + 1 >= self.setup.options.attempts {
            self.tally.lost_tokens += by_decode;
            self.end(request, End::Failed);
            return;
        }
        self.release(request);
        self.tally.restarted += 1;
        self.journeys[request as usize].attempt += 1;
        self.start(request);
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Start(count) => (0..count).for_each(|_| self.start_worker()),
            Change::Drain(worker) => self.drain(worker),
            Change::Lose(worker) => self.lose(worker),
            Change::Scale(wanted) => {
                let up = |w: &&DecodeWorker| matches!(w.life, Life::Live | Life::Starting);
                let now = self.decode.iter().filter(up).count() as u32;
                (now..wanted).for_each(|_| self.start_worker());
                for _ in wanted..now {
                    let newest = self
                        .decode
                        .iter()
                        .rposition(|w| matches!(w.life, Life::Live | Life::Starting));
                    if let Some(worker) = newest {
                        self.drain(worker as u32);
                    }
                }
            }
        }
    }

    fn start_worker(&mut self) {
        let worker = self.decode.len() as u32;
        let row_words = self.setup.activity.row_words();
        self.decode.push(DecodeWorker::new(Life::Starting, row_words));
        self.tally.request_s.push(0.0);
        self.observing.push((0, 0.0));
        let loaded = self.now + nanos(self.setup.options.load_s);
        self.agenda.at(loaded, Event::Loaded(worker));
    }

    fn drain(&mut self, worker: u32) {
        if let Some(decode) = self.decode.get_mut(worker as usize)
            && matches!(decode.life, Life::Live | Life::Starting)
        {
            // Requests on their way to it are still welcome.
            decode.life = Life::Draining;
            self.membership();
        }
    }

    fn lose(&mut self, worker: u32) {
        let Some(decode) = self.decode.get_mut(worker as usize) else {
            return;
        };
        decode.life = Life::Gone;
        decode.incarnation += 1;
        decode.stepping = false;
        decode.kv_used = 0;
        let mut under: Vec<u32> = decode.running.drain(..).map(|job| job.request).collect();
        under.extend(decode.waiting.drain(..).map(|job| job.request));
        self.membership();
        for request in under {
            self.tally.in_decode(self.now, -1);
            self.again(request);
        }
    }

    fn membership(&mut self) {
        self.live = (0..self.decode.len() as u32)
            .filter(|w| self.decode[*w as usize].life == Life::Live)
            .collect();
        for router in &mut self.routers {
            router.workers(&self.live, self.decode.len());
        }
    }

    fn scrape(&mut self) {
        if let Visibility::Reports {
            interval_s, delay_s, ..
        } = self.setup.options.visibility
        {
            for router in &mut self.routers {
                let counts = self.decode.iter().map(DecodeWorker::requests);
                router.view.scrape(self.now, delay_s, counts);
            }
            self.agenda.at(self.now + nanos(interval_s).max(1), Event::Scrape);
        }
    }

    fn exchange(&mut self) {
        if let Visibility::Exchange { interval_s, delay_s } = self.setup.options.visibility {
            let all: Vec<u32> = (0..self.decode.len())
                .map(|w| self.routers.iter().map(|r| r.view.own[w]).sum())
                .collect();
            for router in &mut self.routers {
                let others = all.iter().zip(&router.view.own).map(|(all, own)| all - own).collect();
                router.view.tell(self.now, delay_s, others);
            }
            self.agenda.at(self.now + nanos(interval_s).max(1), Event::Exchange);
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
