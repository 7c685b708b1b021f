//! The KV cache: paged blocks, hand-offs that pin them, and the side channel over which another worker pulls them.

mod blocks;
mod pins;
mod pull;
mod side_channel;
mod wire;

pub use blocks::{BlockPool, Content, Paged};
pub use pins::Pins;
pub use pull::{HandOff, PullClient, PullError};
pub use side_channel::{serve_side_channel, without_delay};
pub use wire::{Blocks, export, import};
