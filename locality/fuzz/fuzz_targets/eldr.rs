//! Centroid files of the ELDR artifact.
#![no_main]

use coterie_locality::eldr::{ImportOptions, export, import};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let options = ImportOptions {
        model: None,
        top_k: 2,
        tau: 0.1,
    };
    if let Ok(table) = import(input, &options) {
        let written = export(&table).expect("an imported table has a counterpart");
        assert_eq!(import(&written, &options).expect("own file"), table);
    }
});
