//! The commands on files, as a process.

mod evaluate;
mod exchange;
mod fit;
mod interrupt;
mod npz;
mod refusals;
mod samples;
mod study;

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use coterie_locality::{
    ActivationCounts, Fingerprint, Geometry, Sample,
    sample::{SampleReader, SampleWriter},
};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;

/// A folder for one test's files, and the program run in it.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Names of the files, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn samples(&self, name: &str, samples: &[Sample]) {
        let mut writer = SampleWriter::new(Vec::new()).unwrap();
        for sample in samples {
            writer.write(sample).unwrap();
        }
        self.write(name, writer.finish().unwrap());
    }

    pub(crate) fn read_samples(&self, name: &str) -> Vec<Sample> {
        SampleReader::new(self.read(name).as_slice())
            .unwrap()
            .map(Result::unwrap)
            .collect()
    }

    pub(crate) fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coterie-calibrator"));
        command
            .args(args.split_whitespace())
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        for variable in ["COTERIE_LOG", "COTERIE_LOG_FORMAT", "RAYON_NUM_THREADS"] {
            command.env_remove(variable);
        }
        command
    }

    /// Standard output of a run that must succeed.
    pub(crate) fn ok(&self, args: &str) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{args}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// The JSON of a run that must succeed.
    pub(crate) fn json(&self, args: &str) -> Value {
        let out = self.ok(&format!("{args} --json"));
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args}: {error}: {out}"))
    }

    /// Exit code and standard error of a run that must fail.
    pub(crate) fn fails(&self, args: &str) -> (i32, String) {
        let output = self.command(args).output().unwrap();
        assert!(output.stdout.is_empty(), "{args}: {}", text(&output.stdout));
        (code(&output), text(&output.stderr))
    }
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code, not a signal")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    path.canonicalize().unwrap().to_string_lossy().into_owned()
}

pub(crate) const DOMAINS: [&str; 4] = ["c", "de", "fr", "zh"];

/// Requests of four domains, each with experts of its own: 3 layers of 16 experts, top 2.
pub(crate) fn synthetic(count: usize, seed: u64) -> Vec<Sample> {
    let geometry = Geometry::new(3, 16, 2).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut counts = |domain: usize, tokens: usize| {
        let mut rows: Vec<u16> = Vec::new();
        for _ in 0..tokens * geometry.layers {
            let usual = rng.gen_bool(0.8);
            let first = if usual {
                domain * 4 + rng.gen_range(0..4)
            } else {
                rng.gen_range(0..16)
            };
            let second = (first + rng.gen_range(1..16)) % 16;
            rows.extend([first as u16, second as u16]);
        }
        ActivationCounts::from_rows(&geometry, &rows, tokens).unwrap()
    };
    (0..count)
        .map(|at| Sample {
            prefill_counts: Some(counts(at % 4, 40)),
            decode_counts: Some(counts(at % 4, 60)),
            prompt_tokens: 40,
            generated_tokens: 60,
            time_unix_ms: 1_796_000_000_000 + at as u64,
            ..Sample::new(Fingerprint::new("toy", geometry))
        })
        .collect()
}

/// Labels of [`synthetic`] requests, one a line.
pub(crate) fn labels(count: usize) -> String {
    let labels: Vec<&str> = (0..count).map(|at| DOMAINS[at % 4]).collect();
    labels.join("\n") + "\n"
}
