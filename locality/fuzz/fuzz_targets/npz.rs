//! Calibration archives of the ELDR artifact.
#![no_main]

use coterie_locality::npz::read_calibration;
use coterie_locality_fuzz::{archive, unpack};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((mode, bytes)) = unpack(input, archive) else {
        return;
    };
    let top_k = (mode > 1).then_some(usize::from(mode));
    for sample in read_calibration(&bytes, None, top_k).into_iter().flatten() {
        for counts in [&sample.prefill_counts, &sample.decode_counts].into_iter().flatten() {
            counts.check_conservation().expect("counts were checked");
        }
    }
});
