//! The router over real sockets, with engine-sim workers behind it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::tests_outside_test_module
)]

mod admin;
mod answers;
mod client_leaves;
mod common;
mod drain;
mod engine_fails;
mod limits;
mod marginal_cost;
mod metrics_page;
mod signatures;
mod tables;
mod text_source;
