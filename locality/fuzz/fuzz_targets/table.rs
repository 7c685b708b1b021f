//! Encoded centroid tables, from the API server or a file.
#![no_main]

use coterie_locality::{CentroidTable, table::Precision};
use coterie_locality_fuzz::{table, unpack};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((_, bytes)) = unpack(input, table) else {
        return;
    };
    // What is accepted must survive being written again.
    if let Ok(decoded) = CentroidTable::decode(&bytes) {
        let again = decoded.encode(Precision::F32).expect("a decoded table is sound");
        assert_eq!(CentroidTable::decode(&again).expect("own encoding"), decoded);
    }
});
