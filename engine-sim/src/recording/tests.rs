use std::path::Path;

use super::*;

fn recording() -> Recording {
    Recording::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/tiny-moe.npz")).unwrap()
}

#[test]
fn npy_round_trip_and_numpy_header() {
    let data: Vec<u8> = (0..24).collect();
    let bytes = npy::write_u8(&[1, 6, 4], &data);
    assert_eq!(bytes.len(), 128 + 24);
    let array = npy::parse(&bytes).unwrap();
    assert_eq!(
        (array.dtype.as_str(), array.shape.as_slice(), array.data),
        ("|u1", &[1, 6, 4][..], &data[..])
    );
}

#[test]
fn npy_refuses_bad_bytes() {
    let good = npy::write_u8(&[2, 2], &[1, 2, 3, 4]);
    for cut in 0..good.len() {
        assert!(npy::parse(&good[..cut]).is_err(), "cut at {cut}");
    }
    let text = String::from_utf8_lossy(&good[10..]).into_owned();
    for (from, to) in [
        ("False", "True "),
        ("|u1", "|O8"),
        ("(2, 2)", "(2, 3)"),
        ("(2, 2)", "(-1,1)"),
    ] {
        let mut bad = good[..10].to_vec();
        bad.extend_from_slice(text.replace(from, to).as_bytes());
        assert!(npy::parse(&bad).is_err(), "{from} -> {to}");
    }
}

#[test]
fn prefill_rows_have_exactly_the_recorded_counts() {
    let recording = recording();
    for request in 0..recording.len() {
        let rows = recording.prefill_rows(request);
        assert_eq!(
            rows.len(),
            recording.prompt(request).len() * recording.layers * recording.top_k
        );
        let mut counts = vec![0_u16; recording.layers * recording.experts];
        for (i, token_layer) in rows.chunks_exact(recording.top_k).enumerate() {
            let layer = i % recording.layers;
            let mut sorted = token_layer.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(
                sorted.len(),
                recording.top_k,
                "request {request}: a token chose an expert twice"
            );
            for expert in token_layer {
                counts[layer * recording.experts + *expert as usize] += 1;
            }
        }
        for layer in 0..recording.layers {
            let at = layer * recording.experts;
            assert_eq!(
                &counts[at..at + recording.experts],
                recording.prefill_counts(request, layer)
            );
        }
    }
}

#[test]
fn eleven_domains_are_balanced() {
    let recording = recording();
    let mut counts = std::collections::BTreeMap::new();
    for request in (0..recording.len()).filter(|r| !recording.domain(*r).contains('+')) {
        *counts.entry(recording.domain(request)).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 11);
    assert!(counts.values().all(|n| *n == 85), "{counts:?}");
}

#[test]
fn finds_prompts_and_replays_by_ids_and_prompts_by_text() {
    let codec =
        crate::tokenizer::TextCodec::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tiny-moe")).unwrap();
    let index = RecordingIndex::new(recording(), &codec);
    let mut by_text = 0;
    for request in 0..index.recording().len() {
        let mut ids = index.recording().prompt(request).to_vec();
        assert_eq!(index.find(&ids), Some(Continuation { request, offset: 0 }));
        by_text += usize::from(index.find_text(&codec.decode(&ids)) == Some(request));
        ids.extend_from_slice(&index.recording().generated(request)[..7]);
        assert_eq!(index.find(&ids), Some(Continuation { request, offset: 7 }));
        *ids.last_mut().unwrap() ^= 1;
        assert_eq!(index.find(&ids), None);
    }
    assert!(by_text > 990, "only {by_text} prompts are found by text");
}
