//! Reading from and writing to the API server.

pub mod children;
pub mod conditions;
pub mod events;
pub mod foreign;
pub mod status;
