use super::*;

fn ring(workers: &[&str], overflow: Overflow) -> PrefixRing {
    PrefixRing::new(workers, 1.25, overflow).unwrap()
}

/// Vectors of the ELDR artifact.
#[test]
fn hashes_and_ring_match_eldr() {
    for (text, hash) in [
        ("same prefix", 9313513574489446240u64),
        ("prefix", 9419624401167768496),
        ("hello", 12085107955937391741),
        ("a#0", 12349103225281887769),
    ] {
        assert_eq!(text_key(text.as_bytes(), 1024), Some(hash), "{text}");
    }
    let abc = ring(&["a", "b", "c"], Overflow::LeastLoaded);
    assert_eq!(
        abc.points[..3],
        [(2269758789777780, 0), (69285102212693996, 1), (127308145499596139, 2)]
    );
    assert_eq!(abc.points.last(), Some(&(18429063240578407456, 0)));
    let long = "x".repeat(1024);
    let longer = format!("{long}tail");
    for (text, owner) in [
        ("same prefix", 1),
        ("prefix", 1),
        ("hello", 2),
        ("world", 0),
        (long.as_str(), 2),
        (longer.as_str(), 2),
    ] {
        assert_eq!(
            text_key(text.as_bytes(), 1024).and_then(|k| abc.owner(k)),
            Some(owner),
            "{text}"
        );
    }
    let urls: Vec<String> = (1..=4).map(|i| format!("http://10.0.0.{i}:20001")).collect();
    let four = PrefixRing::new(&urls, 1.25, Overflow::LeastLoaded).unwrap();
    for (text, owner) in [
        ("same prefix", 2),
        ("prefix", 2),
        ("hello", 0),
        ("world", 1),
        (long.as_str(), 1),
    ] {
        assert_eq!(
            text_key(text.as_bytes(), 1024).and_then(|k| four.owner(k)),
            Some(owner),
            "{text}"
        );
    }
}

#[test]
fn eldr_overflow_goes_to_the_least_loaded() {
    let abc = ring(&["a", "b", "c"], Overflow::LeastLoaded);
    let key = text_key(b"hello", 1024);
    assert_eq!(abc.choose(key, &[0.0, 0.0, 100.0]).unwrap().worker, 0);
    assert_eq!(abc.choose(None, &[2.0, 1.0, 1.0]).unwrap().worker, 1);
    assert_eq!(text_key(b"", 1024), None);
    for factor in [1.0, 1.25, 2.0] {
        let ring = PrefixRing::new(&["a", "b", "c"], factor, Overflow::LeastLoaded).unwrap();
        for code in 0..64u8 {
            let loads = [code % 4, code / 4 % 4, code / 16].map(f32::from);
            let choice = ring.choose(key, &loads).unwrap();
            let sum: f64 = loads.iter().map(|l| f64::from(*l)).sum();
            let owner_fits = f64::from(loads[2]) <= (sum + 1.0) / 3.0 * factor;
            let lowest = (0..3).min_by(|a, b| loads[*a].total_cmp(&loads[*b])).unwrap();
            assert_eq!(choice.worker, if owner_fits { 2 } else { lowest }, "{factor} {loads:?}");
        }
    }
}

#[test]
fn overflow_walks_the_ring_to_one_second_home() {
    let names: Vec<String> = (0..6).map(|i| format!("prefill-{i}")).collect();
    let ring = PrefixRing::new(&names, 1.25, Overflow::WalkRing).unwrap();
    let key = text_key(b"a long system prompt", 1024);
    let owner = ring.owner(key.unwrap()).unwrap();
    let mut loads = [1.0f32; 6];
    loads[owner] = 50.0;
    let second = ring.choose(key, &loads).unwrap();
    assert!(second.spilled && second.worker != owner && second.owner == Some(owner));
    // The second home does not depend on which other worker happens to be least loaded.
    for other in (0..6).filter(|w| *w != owner && *w != second.worker) {
        let mut shifted = loads;
        shifted[other] = 0.0;
        assert_eq!(ring.choose(key, &shifted).unwrap().worker, second.worker);
    }
}

#[test]
fn token_ids_are_unambiguous_and_apart_from_text() {
    assert_ne!(token_key(&[1, 23], 1024), token_key(&[12, 3], 1024));
    assert_eq!(token_key(&[7; 300], 1024), token_key(&[7; 256], 1024));
    assert_eq!(token_key(&[], 1024), None);
    assert_ne!(token_key(&[0x6c6c_6568], 1024), text_key(b"hell", 1024));
}

#[test]
fn refuses_bad_factors_and_survives_no_workers() {
    for bad in [0.5, f64::NAN, f64::INFINITY] {
        assert!(PrefixRing::new(&["a"], bad, Overflow::WalkRing).is_err());
    }
    let none = PrefixRing::new(&[] as &[&str], 1.25, Overflow::WalkRing).unwrap();
    assert!(none.choose(Some(1), &[]).is_none() && none.choose(None, &[]).is_none());
}
