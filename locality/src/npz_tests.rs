use std::io::Write;

use proptest::prelude::*;

use super::*;

fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(data);
    out
}

fn i16s(values: &[i16]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Two requests, two layers, three experts, top-1: three prompt tokens each, two decode tokens each.
fn members() -> Vec<(&'static str, Vec<u8>)> {
    let text: Vec<u8> =
        r#"{"model":"toy","top_k":1,"seed":1}"#.chars().flat_map(|c| (c as u32).to_le_bytes()).collect();
    vec![
        (
            "prefill_counts",
            npy("<i2", "(2, 2, 3)", &i16s(&[3, 0, 0, 1, 1, 1, 0, 2, 1, 0, 0, 3])),
        ),
        (
            "decode_counts",
            npy("<i2", "(2, 2, 3)", &i16s(&[2, 0, 0, 1, 1, 0, 0, 2, 0, 0, 0, 2])),
        ),
        (
            "prompt_tokens",
            npy("<i8", "(2,)", &[3i64, 3].map(i64::to_le_bytes).concat()),
        ),
        ("decode_tokens", npy("<i8", "()", &2i64.to_le_bytes())),
        ("metadata", npy("<U34", "()", &text)),
    ]
}

#[test]
fn reads_what_the_artifact_writes() {
    let samples = read_calibration(&archive(&members()), None, None).unwrap();
    assert_eq!(samples.len(), 2);
    assert_eq!(
        samples[0].fingerprint,
        Fingerprint::new("toy", Geometry::new(2, 3, 1).unwrap())
    );
    assert_eq!(samples[1].prefill_counts.as_ref().unwrap().cells(), [0, 2, 1, 0, 0, 3]);
    assert_eq!((samples[1].prompt_tokens, samples[1].generated_tokens), (3, 2));
    let without_decode: Vec<_> = members()
        .into_iter()
        .filter(|(n, _)| !n.starts_with("decode"))
        .collect();
    assert!(
        read_calibration(&archive(&without_decode), None, None).unwrap()[0]
            .decode_counts
            .is_none()
    );
}

#[test]
fn says_what_is_wrong() {
    let refuse = |change: (&'static str, Option<Vec<u8>>)| {
        let mut all: Vec<_> = members().into_iter().filter(|(n, _)| *n != change.0).collect();
        all.extend(change.1.map(|bytes| (change.0, bytes)));
        read_calibration(&archive(&all), None, None).unwrap_err().to_string()
    };
    assert!(refuse(("prefill_counts", None)).contains("prefill_counts: is missing"));
    assert!(refuse(("prompt_tokens", None)).contains("prompt_tokens: is missing"));
    assert!(refuse(("decode_tokens", None)).contains("is missing beside decode_counts"));
    assert!(refuse(("metadata", None)).contains("has no top_k"));
    assert!(
        refuse(("prompt_tokens", Some(npy("|u1", "(2,)", &[3, 4])))).contains("request 1: activation counts: layer 0")
    );
    let negative = npy("<i2", "(2, 2, 3)", &i16s(&[-3, 0, 0, 1, 1, 1, 0, 2, 1, 0, 0, 3]));
    assert!(refuse(("prefill_counts", Some(negative))).contains("no counts"));
    assert!(refuse(("decode_counts", Some(npy("|u1", "(1, 2, 3)", &[0; 6])))).contains("differs from prefill_counts"));
    assert!(refuse(("prefill_counts", Some(npy("<f4", "(1,)", &[0; 4])))).contains("'<f4' is not supported"));
    assert!(matches!(read_calibration(b"no zip", None, None), Err(NpzError::Zip(_))));
}

proptest! {
    #![proptest_config(crate::property::config())]

    #[test]
    fn never_panics(flips in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6)) {
        let mut bytes = archive(&members());
        for (at, value) in flips {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        let _ = read_calibration(&bytes, None, None);
    }
}
