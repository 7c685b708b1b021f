//! Workers as a whole, over HTTP.

mod common;
mod dialect;
mod faults_and_drain;
mod hand_off;
mod load;
mod recorded;
mod vectors;
