//! Predictors: learning them, and predicting one request's decode frequencies from its text or its prefill counts.

use coterie_locality::{
    Geometry, Sample,
    predictor::{Evidence, LearnOptions, Learned, NgramCounter, Scratch, TextMap, learn},
};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::{
    exchange::{write_f32, write_u32},
    peer::{path, seconds},
    report::Table,
    suite::{Suite, say},
    synthetic::Traffic,
    timing::{Times, human, on_threads},
};

/// Requests that are predicted and were not learned from.
const HELD_OUT: usize = 200;
/// Bytes of the texts that are learned from.
const TEXT_BYTES: usize = 2048;

/// Measures both geometries.
pub(super) fn run(suite: &mut Suite) -> anyhow::Result<()> {
    let mut fits = Table::new(
        "predictor/fit",
        [
            "geometry",
            "map of",
            "ours 1 thread",
            "ours 2 threads",
            "numpy 1 thread",
            "numpy 2 threads",
            "scikit-learn RidgeCV 2 threads",
            "numpy / ours",
        ],
    );
    let mut errors = Table::new(
        "predictor/error",
        [
            "geometry",
            "map of",
            "ours",
            "numpy, rank 32",
            "scikit-learn, full rank",
            "mean",
            "own prefill frequencies",
        ],
    );
    let mut inference = Table::new(
        "predictor/inference",
        ["geometry", "from", "ours p50", "ours p99", "peer p50", "peer / ours"],
    );
    let mut memory = Table::new(
        "predictor/memory",
        ["geometry", "map of text", "map of counts", "all predictors"],
    );
    let samples = suite.rounds(1000, 300);
    for geometry in [Geometry::new(48, 128, 8)?, Geometry::new(58, 256, 8)?] {
        let name = format!("{}x{}", geometry.layers, geometry.experts);
        let case = Case::new(suite, geometry, samples)?;
        for source in [Source::Text, Source::Counts] {
            say(&format!("predictor fit {name} from {}", source.name()));
            case.fit(suite, source, &mut fits, &mut errors)?;
        }
        say(&format!("predictor inference {name}"));
        let learned = case.learn(&case.stripped(Source::Both))?;
        case.infer(suite, &learned, &mut inference)?;
        let kib = |bytes: usize| format!("{} KiB", bytes.div_ceil(1024));
        let predictors = &learned.predictors;
        let text = predictors.text().map_or(0, TextMap::bytes);
        memory.row([
            name.clone(),
            kib(text),
            kib(predictors.prefill().map_or(0, |prefill| prefill.map().bytes())),
            kib(predictors.bytes()),
        ]);
        if name == "58x256" {
            suite.report.bar(
                "memory of the map of text, 58x256",
                "< 4 MiB",
                kib(text),
                text < 4 << 20,
            );
        }
    }
    for table in [fits, errors, inference, memory] {
        suite.report.table(table);
    }
    Ok(())
}

/// What is learned from.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Text,
    Counts,
    Both,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Counts => "prefill frequencies",
            Self::Both => "both",
        }
    }
}

struct Case {
    geometry: Geometry,
    traffic: Traffic,
    /// Those learned from, then the held-out ones.
    samples: Vec<Sample>,
    learned_from: usize,
    files: Value,
}

impl Case {
    fn new(suite: &Suite, geometry: Geometry, learned_from: usize) -> anyhow::Result<Self> {
        let traffic = Traffic::new(geometry, 61);
        let mut samples = traffic.samples(learned_from + HELD_OUT)?;
        samples.par_iter_mut().enumerate().for_each(|(number, sample)| {
            let mut counter = NgramCounter::new();
            counter.push(&traffic.text(number, TEXT_BYTES));
            sample.ngrams = counter.ngrams();
        });
        let mut case = Self {
            geometry,
            traffic,
            samples,
            learned_from,
            files: json!({}),
        };
        case.hand_over(suite)?;
        Ok(case)
    }

    /// N-grams, prefill and decode frequencies of all samples, as files.
    fn hand_over(&mut self, suite: &Suite) -> anyhow::Result<()> {
        let (number, cells) = (self.samples.len(), self.geometry.cells());
        let file = |name: &str| suite.file(&format!("predictor-{}-{name}.npy", self.geometry.cells()));
        let ngrams: Vec<[u32; 3]> = self
            .samples
            .iter()
            .enumerate()
            .flat_map(|(row, sample)| {
                sample
                    .ngrams
                    .iter()
                    .map(move |(bucket, count)| [row as u32, *bucket, *count])
            })
            .collect();
        write_u32(&file("ngrams"), &[ngrams.len(), 3], ngrams.iter().flatten().copied())?;
        let frequencies = |counts: fn(&Sample) -> Option<&coterie_locality::ActivationCounts>| -> Vec<f32> {
            let rows = self.samples.iter().filter_map(counts);
            rows.flat_map(|c| c.cells().iter().map(|n| *n as f32 / c.tokens() as f32))
                .collect()
        };
        write_f32(
            &file("prefill"),
            &[number, cells],
            &frequencies(|s| s.prefill_counts.as_ref()),
        )?;
        write_f32(
            &file("decode"),
            &[number, cells],
            &frequencies(|s| s.decode_counts.as_ref()),
        )?;
        self.files = json!({
            "ngrams": path(&file("ngrams")), "prefill": path(&file("prefill")), "decode": path(&file("decode")),
            "learned_from": self.learned_from,
        });
        Ok(())
    }

    /// The samples to learn from, without what the other source would read.
    fn stripped(&self, source: Source) -> Vec<Sample> {
        self.samples[..self.learned_from]
            .iter()
            .map(|sample| {
                let mut sample = sample.clone();
                match source {
                    Source::Text => sample.prefill_counts = None,
                    Source::Counts => sample.ngrams = Vec::new(),
                    Source::Both => {}
                }
                sample
            })
            .collect()
    }

    fn learn(&self, samples: &[Sample]) -> anyhow::Result<Learned> {
        let samples: Vec<&Sample> = samples.iter().collect();
        learn(&self.geometry, &samples, &LearnOptions::default())
            .ok_or_else(|| anyhow::anyhow!("nothing could be learned"))
    }

    fn fit(&self, suite: &mut Suite, source: Source, fits: &mut Table, errors: &mut Table) -> anyhow::Result<()> {
        let mut peers = suite.peers()?;
        let (mut ours, mut theirs) = (<[Times; 2]>::default(), <[Times; 2]>::default());
        let (mut learned, mut peer_error) = (None, f64::NAN);
        let samples = self.stripped(source);
        let mut arguments = self.files.clone();
        arguments["text"] = json!(source == Source::Text);
        for _ in 0..suite.rounds(2, 1) {
            for ((threads, peer), (mine, yours)) in peers.iter_mut().zip(ours.iter_mut().zip(&mut theirs)) {
                mine.add(on_threads(*threads, || {
                    Times::of(1, |_| learned = Some(self.learn(&samples)))
                })?);
                let answer = peer.call("ridge_fit", &arguments)?;
                yours.add(seconds(&answer)?);
                peer_error = answer["squared"].as_f64().unwrap_or(f64::NAN);
            }
        }
        let learned = learned.ok_or_else(|| anyhow::anyhow!("no round"))??;
        let [_, (_, two)] = &mut peers;
        let scikit = two.call("ridge_cv", &arguments)?;
        let [own_one, own_two] = ours.map(|times| times.median());
        let [one, two] = theirs.map(|times| times.median());
        let name = format!("{}x{}", self.geometry.layers, self.geometry.experts);
        fits.row([
            name.clone(),
            source.name().to_owned(),
            human(own_one),
            human(own_two),
            human(one),
            human(two),
            human(seconds(&scikit)?.median()),
            format!("{:.1}", one.min(two) / own_one.min(own_two)),
        ]);
        let error = |value: f64| format!("{:.1}", value * 1e4);
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        errors.row([
            name.clone(),
            source.name().to_owned(),
            error(self.error(&learned, source)),
            error(peer_error),
            error(number(&scikit["squared"])),
            error(number(&scikit["mean_squared"])),
            error(number(&scikit["own_squared"])),
        ]);
        if name == "48x128" && self.learned_from == 1000 {
            let what = format!("learning the map of {}, 1000 samples, 48x128", source.name());
            suite.report.bar(what, "≤ 5 s", human(own_two), own_two <= 5.0);
        }
        Ok(())
    }

    /// Mean over held-out samples of the squared error per cell of their decode frequencies.
    fn error(&self, learned: &Learned, source: Source) -> f64 {
        let mut predict = Predict::new(self, learned);
        let mut sum = 0.0;
        for sample in &self.samples[self.learned_from..] {
            predict.text = NgramCounter::from_ngrams(&sample.ngrams);
            match source {
                Source::Text => predict.by_text(),
                Source::Counts | Source::Both => predict.by_counts(sample),
            }
            let Some(decode) = &sample.decode_counts else { continue };
            let tokens = decode.tokens() as f32;
            let cells = decode.cells().iter().zip(&predict.out);
            sum += cells
                .map(|(n, p)| f64::from((*n as f32 / tokens - p).powi(2)))
                .sum::<f64>();
        }
        sum / (HELD_OUT * self.geometry.cells()) as f64
    }

    fn infer(&self, suite: &mut Suite, learned: &Learned, table: &mut Table) -> anyhow::Result<()> {
        let name = format!("{}x{}", self.geometry.layers, self.geometry.experts);
        let mut predict = Predict::new(self, learned);
        let mut peer = suite.python.start(1)?;
        for (kib, bar) in [(2, 50e-6), (32, 400e-6)] {
            let texts: Vec<Vec<u8>> = (0..64).map(|i| self.traffic.text(2_000_000 + i, kib * 1024)).collect();
            let file = suite.file(&format!("texts-{kib}.npy"));
            write_u32(
                &file,
                &[64, kib * 1024],
                texts.iter().flatten().map(|byte| u32::from(*byte)),
            )?;
            let mut arguments = self.files.clone();
            arguments["texts"] = path(&file);
            arguments["calls"] = json!(suite.rounds(100, 20));
            let (mut ours, mut theirs) = (Times::default(), Times::default());
            for _ in 0..suite.rounds(3, 1) {
                ours.add(Times::of(1000, |i| {
                    predict.text.clear();
                    predict.text.push(&texts[i % texts.len()]);
                    predict.by_text();
                }));
                theirs.add(seconds(&peer.call("ridge_text", &arguments)?)?);
            }
            table.row(inference_row(&name, &format!("text of {kib} KiB"), &ours, &theirs));
            if name == "48x128" {
                let what = format!("text of {kib} KiB to frequencies, 48x128, p50");
                suite.report.bar(
                    what,
                    format!("≤ {}", human(bar)),
                    human(ours.median()),
                    ours.median() <= bar,
                );
            }
        }
        let mut arguments = self.files.clone();
        arguments["calls"] = json!(suite.rounds(500, 50));
        let (mut ours, mut theirs) = (Times::default(), Times::default());
        let held_out = &self.samples[self.learned_from..];
        for _ in 0..suite.rounds(3, 1) {
            ours.add(Times::of(1000, |i| predict.by_counts(&held_out[i % held_out.len()])));
            theirs.add(seconds(&peer.call("ridge_counts", &arguments)?)?);
        }
        table.row(inference_row(&name, "prefill counts", &ours, &theirs));
        Ok(())
    }
}

fn inference_row(geometry: &str, from: &str, ours: &Times, theirs: &Times) -> [String; 6] {
    [
        geometry.to_owned(),
        from.to_owned(),
        human(ours.median()),
        human(ours.p99()),
        human(theirs.median()),
        format!("{:.0}", theirs.median() / ours.median()),
    ]
}

/// What a router keeps from call to call.
struct Predict<'a> {
    learned: &'a Learned,
    text: NgramCounter,
    scratch: Scratch,
    out: Vec<f32>,
}

impl<'a> Predict<'a> {
    fn new(case: &Case, learned: &'a Learned) -> Self {
        Self {
            learned,
            text: NgramCounter::new(),
            scratch: Scratch::new(&case.geometry),
            out: vec![0.0; case.geometry.cells()],
        }
    }

    fn by_text(&mut self) {
        self.predict(true, None);
    }

    fn by_counts(&mut self, sample: &Sample) {
        self.predict(false, sample.prefill_counts.as_ref());
    }

    fn predict(&mut self, text: bool, prefill: Option<&coterie_locality::ActivationCounts>) {
        let evidence = Evidence {
            text: text.then_some(&self.text),
            prefill,
        };
        if self
            .learned
            .predictors
            .predict_into(evidence, &mut self.scratch, &mut self.out)
            .is_err()
        {
            // Seen as an absurd error in the table.
            self.out.fill(f32::NAN);
        }
    }
}
