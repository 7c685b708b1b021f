//! The admin port: acknowledgement, statistics, samples, fleet.

mod auth;
mod samples;
mod server;

pub(crate) use auth::Token;
pub(crate) use server::serve;
