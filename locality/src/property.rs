//! Settings of the property tests: a fixed seed, so that a run on one machine says what it says on every other.

use proptest::test_runner::{Config, RngSeed};

/// Fixed seed, no files.
pub(crate) fn config() -> Config {
    Config {
        rng_seed: RngSeed::Fixed(20_261_130),
        failure_persistence: None,
        ..Config::default()
    }
}
