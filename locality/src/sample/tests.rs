use proptest::prelude::*;

use super::*;
use crate::geometry::Geometry;

fn geometry() -> Geometry {
    Geometry::new(2, 3, 2).unwrap()
}

fn sample(model: &str, seed: u32, parts: u8) -> Sample {
    let counts = |add: u32| {
        let cells = (0..6)
            .map(|i| seed.wrapping_mul(2_654_435_761).wrapping_add(add + i) >> (i * 5))
            .collect();
        ActivationCounts::from_cells(&geometry(), cells, (1 << 34) + u64::from(seed)).unwrap()
    };
    Sample {
        prefill_counts: (parts & 1 != 0).then(|| counts(0)),
        decode_counts: (parts & 2 != 0).then(|| counts(7)),
        cluster: (parts & 4 != 0).then_some(seed % 9),
        table_digest: (parts & 8 != 0).then(|| format!("sha256:{seed:064x}")),
        ngrams: if parts & 16 != 0 {
            vec![(0, 3), (seed % 1000 + 1, 1), (NGRAM_BUCKETS - 1, seed)]
        } else {
            Vec::new()
        },
        prompt_tokens: u64::from(seed),
        generated_tokens: 128,
        time_unix_ms: 1_796_000_000_000,
        source: if parts & 32 != 0 { Source::Text } else { Source::Prefill },
        weight: 2.5,
        ..Sample::new(Fingerprint::new(model, geometry()))
    }
}

fn write(samples: &[Sample]) -> Vec<u8> {
    let mut writer = SampleWriter::new(Vec::new()).unwrap();
    for sample in samples {
        writer.write(sample).unwrap();
    }
    writer.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Vec<Sample>, SampleError> {
    SampleReader::new(bytes)?.collect()
}

#[test]
fn keeps_samples_of_several_models_apart() {
    let samples = [
        sample("a", 1, 63),
        sample("a", 2, 0),
        sample("b", 3, 31),
        sample("a", 4, 1),
    ];
    let bytes = write(&samples);
    assert_eq!(read(&bytes).unwrap(), samples);
    assert_eq!(read(&write(&[])).unwrap(), []);
}

#[test]
fn every_cut_is_noticed() {
    let bytes = write(&[sample("a", 1, 63), sample("a", 2, 63)]);
    for length in 0..bytes.len() {
        assert!(
            read(&bytes[..length]).is_err(),
            "cut at {length} of {} was not noticed",
            bytes.len()
        );
    }
    let mut reader = SampleReader::new(&bytes[..bytes.len() - 3]).unwrap();
    assert!(reader.next().unwrap().is_ok() && reader.next().unwrap().is_ok());
    assert!(matches!(reader.next(), Some(Err(SampleError::Cut(2)))));
    assert!(reader.next().is_none());
}

#[test]
fn joined_containers_are_refused_after_the_first() {
    let one = write(&[sample("a", 1, 63)]);
    let joined = [&one[..], &one[..]].concat();
    let mut reader = SampleReader::new(&joined[..]).unwrap();
    assert!(reader.next().unwrap().is_ok());
    assert!(matches!(reader.next(), Some(Err(SampleError::Malformed(_)))));
    assert!(reader.next().is_none());
}

#[test]
fn refuses_lengths_that_would_fill_memory() {
    let mut bytes = write(&[])[..12].to_vec();
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(read(&bytes), Err(SampleError::TooLarge(_))));
    // A long record that is announced and never comes is a cut, not an allocation.
    let mut bytes = write(&[])[..12].to_vec();
    bytes.extend_from_slice(&(MAX_RECORD_BYTES as u32).to_le_bytes());
    assert!(matches!(read(&bytes), Err(SampleError::Cut(0))));
}

#[test]
fn refuses_samples_that_contradict_themselves() {
    let mut writer = SampleWriter::new(Vec::new()).unwrap();
    let good = sample("a", 5, 63);
    for change in [
        &(|s: &mut Sample| s.weight = f32::NAN) as &dyn Fn(&mut Sample),
        &|s| s.weight = -1.0,
        &|s| s.weight = 2e9,
        &|s| s.decode_counts = ActivationCounts::from_cells(&geometry(), vec![1, 1, 1, 0, 0, 0], 1).ok(),
        &|s| s.ngrams = vec![(5, 1), (5, 1)],
        &|s| s.ngrams = vec![(NGRAM_BUCKETS, 1)],
        &|s| s.fingerprint.geometry = Geometry::new(3, 3, 2).unwrap(),
        &|s| s.table_digest = Some("x".repeat(200)),
        &|s| s.fingerprint.model = "x".repeat(5000),
    ] {
        let mut bad = good.clone();
        change(&mut bad);
        assert!(matches!(writer.write(&bad), Err(SampleError::Invalid(_))));
    }
    writer.write(&good).unwrap();
    assert_eq!(read(&writer.finish().unwrap()).unwrap(), [good]);
}

#[test]
fn a_count_in_the_end_record_must_agree() {
    let mut bytes = write(&[sample("a", 1, 1)]);
    *bytes.last_mut().unwrap() = 7;
    assert!(matches!(read(&bytes), Err(SampleError::Malformed(_))));
}

proptest! {
    #![proptest_config(crate::property::config())]

    #[test]
    fn round_trips(seeds in proptest::collection::vec((any::<u32>(), any::<u8>(), any::<bool>()), 0..12)) {
        let samples: Vec<Sample> =
            seeds.into_iter().map(|(seed, parts, a)| sample(if a { "a" } else { "b" }, seed, parts)).collect();
        prop_assert_eq!(read(&write(&samples)).unwrap(), samples);
    }

    #[test]
    fn reading_never_panics(flips in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..8), noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = write(&[sample("a", 77, 63), sample("b", 78, 63)]);
        for (at, value) in flips {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        let _ = read(&bytes);
        let _ = read(&noise);
        let mut framed = write(&[])[..12].to_vec();
        framed.extend_from_slice(&noise);
        let _ = read(&framed);
    }
}
