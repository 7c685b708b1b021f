//! Sample containers, from routers or a file.
#![no_main]

use coterie_locality::sample::{SampleReader, SampleWriter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(reader) = SampleReader::new(input) else { return };
    let mut writer = SampleWriter::new(Vec::new()).expect("memory takes every byte");
    let mut read = Vec::new();
    for sample in reader {
        let Ok(sample) = sample else { return };
        writer.write(&sample).expect("a read sample is sound");
        read.push(sample);
    }
    let bytes = writer.finish().expect("memory takes every byte");
    let again: Vec<_> = SampleReader::new(&bytes[..])
        .expect("own bytes")
        .map(|s| s.expect("own bytes"))
        .collect();
    assert_eq!(again, read);
});
