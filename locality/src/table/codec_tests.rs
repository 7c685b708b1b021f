use proptest::prelude::*;

use super::*;
use crate::geometry::Geometry;
use crate::transform::{TransformKind, normalise};

fn table(kind: TransformKind, kept: Vec<u16>, clusters: usize, seed: u32) -> CentroidTable {
    let geometry = Geometry::new(3, 5, 2).unwrap();
    let dim = kept.len() * 5;
    let value = |i: usize| f32::from((seed.wrapping_mul(31).wrapping_add(i as u32 * 97) % 251) as u8) / 251.0 + 0.01;
    let mut centroids: Vec<f32> = (0..clusters * dim).map(value).collect();
    centroids.chunks_exact_mut(dim).for_each(|c| {
        normalise(c);
    });
    let idf = if kind == TransformKind::CountIdf {
        (0..dim).map(value).collect()
    } else {
        Vec::new()
    };
    CentroidTable {
        version: 1,
        fingerprint: Fingerprint {
            revision: Some("abc".into()),
            ..Fingerprint::new("toy", geometry)
        },
        transform: Transform::new(kind, &geometry, kept, idf).unwrap(),
        centroids,
        tau: 0.125,
        baselines: Baselines {
            requests: 100,
            fit_mean: 0.75,
            fit_se: 0.01,
            skew: 1.25,
            cluster_shares: vec![1.0 / clusters as f64; clusters],
            rho: Some(0.6),
            rho_se: None,
        },
        report: FitReport {
            samples: 7,
            ..FitReport::default()
        },
        predictors: None,
        text: None,
    }
}

#[test]
fn f16_halves_the_payload_and_barely_moves_centroids() {
    let exact = table(TransformKind::CountIdf, vec![0, 2], 4, 1);
    let rounded = CentroidTable::decode(&exact.encode(Precision::F16).unwrap()).unwrap();
    assert!(
        exact
            .centroids
            .iter()
            .zip(&rounded.centroids)
            .all(|(a, b)| (a - b).abs() < 5e-4)
    );
    assert_eq!(exact.transform, rounded.transform);
}

#[test]
fn says_what_is_wrong_with_bytes() {
    let good = table(TransformKind::Count, vec![0, 1, 2], 2, 3)
        .encode(Precision::F32)
        .unwrap();
    let refuse = |bytes: &[u8]| CentroidTable::decode(bytes).unwrap_err().to_string();
    let changed = |at: usize, to: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + to.len()].copy_from_slice(to);
        refuse(&bytes)
    };
    assert!(refuse(b"").contains("shorter than its preamble"));
    assert!(changed(0, b"X").contains("not a centroid table"));
    assert!(changed(8, &9u16.to_le_bytes()).contains("format version 9"));
    assert!(changed(12, &u32::MAX.to_le_bytes()).contains("header of 4294967295 exceeds the limit"));
    assert!(changed(16, &u64::MAX.to_le_bytes()).contains("body of"));
    assert!(changed(16, &5u64.to_le_bytes()).contains("body length differs"));
    assert!(refuse(&good[..good.len() - 3]).contains("compressed body"));
    let mut longer = good.clone();
    longer.push(0);
    assert!(refuse(&longer).contains("bytes after the body"));
}

/// A small body that inflates without end stops at the announced length.
#[test]
fn a_compression_bomb_is_bounded() {
    use std::io::Write;
    let mut bytes = b"COTTABLE\x01\x00\x00\x00".to_vec();
    bytes.extend_from_slice(&10u32.to_le_bytes());
    bytes.extend_from_slice(&1000u64.to_le_bytes());
    let mut deflate = flate2::write::ZlibEncoder::new(bytes, flate2::Compression::best());
    deflate.write_all(&vec![0; 30_000_000]).unwrap();
    let error = CentroidTable::decode(&deflate.finish().unwrap()).unwrap_err();
    assert!(error.to_string().contains("body length differs"), "{error}");
}

#[test]
fn refuses_tables_that_contradict_themselves() {
    let good = || table(TransformKind::CountIdf, vec![0, 1], 2, 5);
    let refused = |change: &dyn Fn(&mut CentroidTable)| {
        let mut bad = good();
        change(&mut bad);
        let read = CentroidTable::decode(&bad.write(Precision::F32).unwrap());
        assert_eq!(bad.encode(Precision::F32).is_err(), read.is_err());
        read.is_err()
    };
    assert!(!refused(&|_| {}));
    assert!(refused(&|t| t.version = 3));
    assert!(refused(&|t| t.tau = 3.0));
    assert!(refused(&|t| t.centroids[0] = 2.0));
    assert!(refused(&|t| t.centroids[0] = f32::NAN));
    assert!(refused(&|t| t.centroids.truncate(0)));
    assert!(refused(&|t| t.baselines.cluster_shares = vec![0.5; 3]));
    assert!(refused(&|t| t.baselines.cluster_shares = vec![1.5, -0.5]));
    let mut other = good();
    other.fingerprint.geometry = Geometry::new(4, 5, 2).unwrap();
    assert!(other.encode(Precision::F32).is_err());
}

#[test]
fn chunks_join_to_the_digest_only_whole_and_in_order() {
    let bytes: Vec<u8> = (0..1000u32).flat_map(u32::to_le_bytes).collect();
    let name = digest(&bytes);
    assert_eq!(
        digest(b""),
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
    let mut chunks = chunk(&bytes, 900);
    assert_eq!(chunks.len(), 5);
    assert!(chunks.iter().all(|c| c.len() <= 900));
    assert_eq!(join(&chunks, &name).unwrap(), bytes);
    assert!(matches!(join(&chunks[..4], &name), Err(TableError::Digest { .. })));
    chunks.swap(0, 1);
    assert!(matches!(join(&chunks, &name), Err(TableError::Digest { .. })));
}

#[test]
fn fingerprints_match_where_both_sides_know() {
    let geometry = Geometry::new(1, 2, 1).unwrap();
    let plain = Fingerprint::new("m", geometry);
    let revision = |r: &str| Fingerprint {
        revision: Some(r.into()),
        ..plain.clone()
    };
    assert!(plain.matches(&revision("a")) && revision("a").matches(&plain) && !revision("a").matches(&revision("b")));
    assert!(!plain.matches(&Fingerprint::new("n", geometry)));
}

proptest! {
    #![proptest_config(crate::property::config())]

    #[test]
    fn round_trips(seed in any::<u32>(), clusters in 1usize..9, kind in 0usize..4, mask in 1u8..8, f16 in any::<bool>()) {
        use TransformKind::{Binary, Count, CountIdf, Sqrt};
        let kept = (0..3).filter(|l| mask >> l & 1 == 1).collect();
        let original = table([Count, CountIdf, Sqrt, Binary][kind], kept, clusters, seed);
        let precision = if f16 { Precision::F16 } else { Precision::F32 };
        let bytes = original.encode(precision).unwrap();
        let decoded = CentroidTable::decode(&bytes).unwrap();
        if precision == Precision::F32 {
            prop_assert_eq!(&decoded, &original);
        }
        // Encoding what was decoded gives the same bytes, so the digest names the content.
        prop_assert_eq!(decoded.encode(precision).unwrap(), bytes);
    }

    #[test]
    fn decoding_never_panics(flips in proptest::collection::vec((0usize..2000, any::<u8>()), 1..8), cut in 0usize..2000) {
        let mut bytes = table(TransformKind::CountIdf, vec![0, 2], 3, 9).encode(Precision::F16).unwrap();
        for (at, value) in flips {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        let _ = CentroidTable::decode(&bytes);
        let _ = CentroidTable::decode(&bytes[..cut.min(bytes.len())]);
    }
}
