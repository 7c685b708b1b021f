//! Front doors over the one core.

pub(crate) mod http;
