//! The OpenAI-compatible HTTP door.

mod body;
mod client;
mod errors;
mod headers;
mod models;
mod relay;
mod routes;
mod server;

pub(crate) use server::{Door, serve};
