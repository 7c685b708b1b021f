//! The calibrator against real parts: a sim engine on loopback, files on disk.

mod collect;
mod common;
mod live;
mod publish;
