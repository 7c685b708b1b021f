use std::path::Path;

use coterie_locality::sample::SampleWriter;
use coterie_locality::{Fingerprint, Geometry, Sample};

use super::{Choices, ExpertSet, Recording};
use crate::tokenizer::TextCodec;

fn folder(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn tiny() -> Recording {
    let codec = TextCodec::load(&folder("models/tiny-moe")).unwrap();
    Recording::load(&folder("recordings/tiny-moe.npz"), Some(&codec), 0).unwrap()
}

#[test]
fn a_recorded_file_is_read_whole_with_text_and_domains() {
    let recording = tiny();
    assert_eq!(recording.geometry, Geometry::new(6, 64, 4).unwrap());
    assert!(recording.len() > 500);
    assert!(recording.domain_names.iter().all(|d| !d.contains('+')));
    for request in &recording.requests {
        assert_eq!(request.prefill.tokens(), u64::from(request.prompt_tokens));
        assert_eq!(request.decode.tokens(), 128);
        request.decode.counts(128).check_conservation().unwrap();
        assert!(!request.text.as_ref().unwrap().is_empty());
        assert!((1..=2).contains(&request.domains.len()));
    }
    let counted = recording.clone().with_ngrams(|text| vec![(1, text.len() as u32)]);
    let lengths = |r: &Recording| r.requests[0].text.as_ref().unwrap().len() as u32;
    assert_eq!(counted.requests[0].ngrams, [(1, lengths(&recording))]);
    let (pure, blended) = recording.pure_and_blended();
    assert_eq!(pure.len() + blended.len(), recording.len());
    let (first, rest) = recording.halves();
    assert_eq!(
        (first.len(), rest.len()),
        (recording.len() / 2, recording.len().div_ceil(2))
    );
    let rust = recording.find_domain("rust").unwrap();
    assert!(!recording.of_domain(rust).is_empty());
    assert!(
        recording
            .without_domain(rust)
            .requests
            .iter()
            .all(|r| !r.domains.contains(&rust))
    );
}

#[test]
fn samples_give_back_their_counts_and_the_same_seed_the_same_choices() {
    let recording = tiny();
    let fingerprint = Fingerprint::new("tiny", recording.geometry);
    let mut writer = SampleWriter::new(Vec::new()).unwrap();
    for request in &recording.requests[..20] {
        let mut sample = Sample::new(fingerprint.clone());
        sample.prefill_counts = Some(request.prefill.clone());
        sample.decode_counts = Some(request.decode.counts(128));
        writer.write(&sample).unwrap();
    }
    writer.write(&Sample::new(fingerprint)).unwrap();
    let bytes = writer.finish().unwrap();
    let drawn = Recording::parse(&bytes, None, 1).unwrap();
    assert_eq!(drawn.len(), 20);
    for (drawn, real) in drawn.requests.iter().zip(&recording.requests) {
        assert_eq!(drawn.decode.counts(128), real.decode.counts(128));
        let mut set = ExpertSet::new(&recording.geometry);
        drawn.decode.add_to(3, &mut set);
        assert_eq!(set.total(), 24, "no token has an expert twice");
    }
    let again = Recording::parse(&bytes, None, 1).unwrap();
    assert_eq!(drawn.requests, again.requests);
    assert_ne!(drawn.requests, Recording::parse(&bytes, None, 2).unwrap().requests);
}

#[test]
fn damaged_bytes_are_refused_with_what_to_bring() {
    for bytes in [&b""[..], b"PK\x03\x04 no zip", b"COTSAMPL", b"hello"] {
        assert!(Recording::parse(bytes, None, 0).is_err());
    }
    let path = folder("models/tiny-moe/config.json");
    let error = Recording::load(&path, None, 0).unwrap_err().to_string();
    assert!(error.contains("Gates come from an .npz"), "{error}");
}

#[test]
fn sets_count_distinct_experts_also_of_wide_models() {
    let geometry = Geometry::new(2, 300, 2).unwrap();
    let choices = Choices::new(geometry, &[0, 299, 1, 2, 0, 5, 1, 2]).unwrap();
    assert_eq!((choices.tokens(), choices.bytes()), (2, 16));
    let mut set = ExpertSet::new(&geometry);
    choices.add_to(0, &mut set);
    choices.add_to(1, &mut set);
    assert_eq!((set.in_layer(0), set.in_layer(1), set.total()), (3, 2, 5));
    assert!(set.contains(0, 299) && !set.contains(1, 299));
    let mut wrapped = ExpertSet::new(&geometry);
    choices.add_to(2, &mut wrapped);
    assert!(wrapped.contains(0, 299), "past the end it starts over");
    let mut seen = Vec::new();
    choices.for_each(1, |layer, expert| seen.push((layer, expert)));
    assert_eq!(seen, [(0, 0), (0, 5), (1, 1), (1, 2)]);
    assert!(Choices::new(geometry, &[0, 300, 1, 2]).is_err());
    assert!(Choices::new(geometry, &[0, 1, 2]).is_err());
}
