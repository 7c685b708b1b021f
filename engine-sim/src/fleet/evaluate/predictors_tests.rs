use super::*;
use crate::fleet::evaluate::{Effort, Section};
use crate::tokenizer::TextCodec;

#[test]
fn held_out_domains_are_spread() {
    assert_eq!(spread(11, 3), [1, 5, 9]);
    assert_eq!(spread(2, 3), [0, 1]);
    assert!(spread(0, 3).is_empty());
}

fn recording(with_text: bool) -> Recording {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let codec = with_text.then(|| TextCodec::load(&here.join("models/tiny-moe")).unwrap());
    let all = Recording::load(&here.join("recordings/tiny-moe.npz"), codec.as_ref(), 1).unwrap();
    all.split_at(300).0
}

#[test]
fn a_recording_with_text_gives_both_tables_of_each_load() {
    let effort = Effort { seeds: 2, requests: 60 };
    let mut document = Document::default();
    Evaluation::new(recording(true), effort)
        .predictors(&mut document)
        .unwrap();
    for (load, _) in LOADS {
        let made = |name: String| document.made(&name).unwrap();
        let sized = made(format!("predictors-{load}"));
        assert!(
            sized.starts_with("| policy | 150 samples: p50 | p99 | 100 samples: p50 | p99 |\n"),
            "{sized}"
        );
        assert_eq!(sized.lines().count(), 2 + RULES.len() * Predictor::ALL.len());
        let unseen = made(format!("predictors-unseen-{load}"));
        assert!(unseen.starts_with("Held out: de, legal, rust. "), "{unseen}");
        assert!(
            unseen
                .lines()
                .all(|l| !l.starts_with('|') || l.matches('|').count() == 10),
            "{unseen}"
        );
    }
}

#[test]
fn a_recording_without_text_is_skipped_with_a_notice() {
    let evaluation = Evaluation::new(recording(false), Effort::QUICK);
    let folder = std::env::temp_dir().join(format!("coterie-predictors-{}", std::process::id()));
    let said = std::cell::RefCell::new(Vec::new());
    let say = |line: &str| said.borrow_mut().push(line.to_owned());
    evaluation.run(&[Section::Predictors], &folder, &say).unwrap();
    let written = std::fs::read_dir(&folder).unwrap().count();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(said.borrow()[0].starts_with("predictors: skipped"), "{said:?}");
    assert_eq!(written, 0);
}
