//! Publishing a table: the CentroidTable first, then its chunks. The operator verifies both before it uses them.

mod kubernetes;
mod objects;

pub use kubernetes::publish;
pub use objects::{Owner, Published, chunk_objects, table_object};
