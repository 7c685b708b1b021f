//! The command line: vLLM's, so that an operator's rendered arguments work unchanged, plus the simulator's own settings.

mod serve;
mod unknown;

pub(crate) use serve::KvTransferConfig;
pub use serve::{Cli, Command, ServeArgs};
pub use unknown::without_unknown;
