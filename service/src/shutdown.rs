use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code after a second signal, as shells report SIGINT.
const EXIT_ABORTED: i32 = 130;

/// The wish to end the process. The first SIGTERM or SIGINT asks for a drain, a second one ends the process at once.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    token: CancellationToken,
}

impl Shutdown {
    /// Listens for SIGTERM and SIGINT. Needs a Tokio runtime.
    ///
    /// # Errors
    /// When the signal handlers cannot be installed.
    pub fn on_signals() -> Result<Self> {
        let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
        let token = CancellationToken::new();
        let drain = token.clone();
        tokio::spawn(async move {
            for count in 1_u8.. {
                let name = tokio::select! {
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                };
                if count > 1 {
                    tracing::warn!(signal = name, "second signal: ending at once");
                    std::process::exit(EXIT_ABORTED);
                }
                tracing::info!(signal = name, "draining");
                drain.cancel();
            }
        });
        Ok(Self { token })
    }

    /// Cancelled by the first signal.
    pub fn token(&self) -> CancellationToken {
        self.token.clone()
    }
}
