//! Routed experts as engines answer them.
#![no_main]

use coterie_locality::{Geometry, counts_from_npy, npy::Array};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(array) = Array::parse(input) {
        let _ = array.whole_numbers();
        let _ = array.text();
    }
    let geometry = Geometry::new(2, 4, 2).expect("within the bounds");
    if let Ok(counts) = counts_from_npy(input, &geometry, ..) {
        counts
            .check_conservation()
            .expect("every chosen expert is counted once");
    }
    let _ = counts_from_npy(input, &geometry, 1..3);
});
