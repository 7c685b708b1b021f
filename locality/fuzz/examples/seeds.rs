//! Writes small sound inputs for every target: `seeds FOLDER` fills `FOLDER/<target>/`.

use std::path::{Path, PathBuf};

use coterie_locality::eldr::{ImportOptions, export, import};
use coterie_locality::sample::SampleWriter;
use coterie_locality::table::Precision;
use coterie_locality::{ActivationCounts, CentroidTable, Fingerprint, FitOptions, Geometry, Sample, Source, fit};
use coterie_locality_fuzz::{npy, plain_table};
// Instrumented as all of this crate is, it needs the fuzzer's counters to link.
use libfuzzer_sys as _;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A centroid file of each variant.
const CENTROID_FILES: [&str; 3] = [
    r#"{"L":2,"e":3,"k":2,"variant":"count_idf","sig_dtype":"<i2","layer_mask":[1],"sig_idf":[2.0,0.0,0.5],"centroids":[[1,0,0],[0,0,1]]}"#,
    r#"{"L":1,"e":2,"centroids":[[0.6,0.8]],"model":"m","n_fit":9,"fit_peak_rho":0.5,"seed":1}"#,
    r#"{"L":1,"e":2,"variant":"gate_prob_all","sig_dtype":"<f4","layer_mask":[0],"micro_centroids":[[1,0],[0,1]]}"#,
];

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: seeds FOLDER")?);
    let samples = samples()?;
    let mut container = SampleWriter::new(Vec::new())?;
    for sample in &samples[..3] {
        container.write(sample)?;
    }
    write(
        &folder,
        "sample",
        &[container.finish()?, SampleWriter::new(Vec::new())?.finish()?],
    )?;

    let mut tables = Vec::new();
    for table in [imported()?, fitted(&samples)?] {
        for precision in [Precision::F32, Precision::F16] {
            let encoded = table.encode(precision)?;
            tables.push([&[0][..], &encoded].concat());
            tables.push([&[1][..], &plain_table(&encoded)].concat());
        }
    }
    write(&folder, "table", &tables)?;

    let ids = [0u8, 1, 2, 3, 1, 2, 0, 3, 3, 0, 1, 1];
    let wide: Vec<u8> = ids.iter().flat_map(|i| u16::from(*i).to_le_bytes()).collect();
    let signed: Vec<u8> = ids.iter().flat_map(|i| i32::from(*i).to_le_bytes()).collect();
    let arrays = [
        npy("|u1", "(3, 2, 2)", &ids),
        npy("<u2", "(3, 2, 2)", &wide),
        npy("<i4", "(3,2,2,)", &signed),
        npy("|u1", "(2, 3, 2)", &ids),
        npy("<U2", "()", &[97, 0, 0, 0, 98, 0, 0, 0]),
    ];
    write(&folder, "npy", &arrays)?;

    let text: Vec<u8> = r#"{"model":"m","top_k":1}"#.chars().flat_map(|c| (c as u32).to_le_bytes()).collect();
    let members = [
        npy("|u1", "(2, 2, 3)", &[3, 0, 0, 1, 1, 1, 0, 2, 1, 0, 0, 3]),
        npy("|u1", "(2, 2, 3)", &[2, 0, 0, 1, 1, 0, 0, 2, 0, 0, 0, 2]),
        npy("|u1", "(2,)", &[3, 3]),
        npy("<i8", "()", &2i64.to_le_bytes()),
        npy(&format!("<U{}", text.len() / 4), "()", &text),
    ];
    let plain: Vec<u8> = members
        .iter()
        .flat_map(|m| [&(m.len() as u16).to_le_bytes()[..], m].concat())
        .collect();
    let packed = coterie_locality_fuzz::archive(&plain);
    write(
        &folder,
        "npz",
        &[[&[1][..], &plain].concat(), [&[0][..], &packed].concat()],
    )?;

    write(&folder, "eldr", &CENTROID_FILES.map(|file| file.as_bytes().to_vec()))?;
    write(&folder, "eldr", &[export(&imported()?)?])
}

fn write(folder: &Path, target: &str, seeds: &[Vec<u8>]) -> Result<()> {
    let folder = folder.join(target);
    std::fs::create_dir_all(&folder)?;
    for (i, seed) in seeds.iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{}-{i}", seed.len())), seed)?;
    }
    Ok(())
}

fn imported() -> Result<CentroidTable> {
    Ok(import(
        CENTROID_FILES[0].as_bytes(),
        &ImportOptions {
            model: Some("m".into()),
            top_k: 2,
            tau: 0.1,
        },
    )?)
}

fn fitted(samples: &[Sample]) -> Result<CentroidTable> {
    let options = FitOptions {
        clusters: 2,
        pairs: 100,
        resamples: 5,
        ..FitOptions::default()
    };
    Ok(fit(samples, &options, None)?.0)
}

/// Requests of two kinds, with everything a sample can hold.
fn samples() -> Result<Vec<Sample>> {
    let geometry = Geometry::new(2, 4, 2)?;
    (0..60u32)
        .map(|i| {
            let first = (i % 2 * 2) as u8;
            let ids = [
                first,
                first + 1,
                first,
                (i % 3) as u8,
                first,
                3 - first,
                (i % 4) as u8,
                1,
            ];
            let mut sample = Sample::new(Fingerprint::new("m", geometry));
            sample.prefill_counts = Some(ActivationCounts::from_rows(&geometry, &ids, 2)?);
            sample.decode_counts = Some(ActivationCounts::from_rows(&geometry, &ids[..4], 1)?);
            sample.prompt_tokens = 2;
            sample.generated_tokens = 1;
            sample.time_unix_ms = 1_796_000_000_000;
            sample.cluster = (i % 3 == 0).then_some(1);
            sample.table_digest = (i % 3 == 0).then(|| "sha256:00".into());
            sample.ngrams = if i % 2 == 0 { vec![(3, 1), (70, 2)] } else { Vec::new() };
            sample.source = if i == 2 { Source::Text } else { Source::Prefill };
            Ok(sample)
        })
        .collect()
}
