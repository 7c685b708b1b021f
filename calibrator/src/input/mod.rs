//! Reading what people give: samples in three forms, domain labels, tables.
//!
//! - [`samples`](load): containers, ELDR's `.npz`, recordings of gates; from a file or standard input, bounded in memory;
//! - [`gates`]: recordings of gates;
//! - [`domains`]: labels, one a line;
//! - `table`: table files.

pub mod domains;
pub mod gates;
mod prompt_text;
mod reservoir;
mod samples;
mod table;

pub use samples::{Form, Loaded, each, load, open, read_bytes};
pub use table::{TableFile, table};
