//! Processes that end with the demo.

use std::{
    fs::File,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::Context as _;

/// A process; killed when dropped.
pub(super) struct Running(Child);

impl Running {
    /// Starts it, its output in a log.
    pub(super) fn start(command: &mut Command, name: &str, dir: &Path) -> anyhow::Result<Self> {
        let log = dir.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn();
        Ok(Self(child.with_context(|| format!("cannot start {name}"))?))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two ports of loopback that nobody uses.
pub(super) fn free_ports() -> anyhow::Result<[u16; 2]> {
    let (one, two) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    Ok([one.local_addr()?.port(), two.local_addr()?.port()])
}
