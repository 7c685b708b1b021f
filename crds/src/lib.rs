//! API types of `coterie.dev/v1alpha1`, and everything that Coterie's parts say to each other in JSON.
//!
//! - [`v1alpha1`]: the three custom resources;
//! - [`routing`]: the routing document, written by the operator and watched by the routers;
//! - [`admin`]: what routers show on their admin port;
//! - [`outcome`]: the calibrator's termination message;
//! - [`names`]: names, labels and ports of every child object;
//! - [`conditions`]: condition types and their closed sets of reasons;
//! - [`quantity`]: the decimal and duration strings of the API.

pub mod admin;
pub mod conditions;
pub mod names;
pub mod outcome;
pub mod quantity;
pub mod routing;
pub mod v1alpha1;
