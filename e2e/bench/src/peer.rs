//! The other side: a Python process that holds the same data and times itself.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::timing::Times;

/// How to start peers.
#[derive(Clone, Debug)]
pub(crate) struct Python {
    /// The interpreter with the peers' packages.
    pub(crate) program: PathBuf,
    /// The folder with `serve.py`.
    pub(crate) scripts: PathBuf,
}

/// A running peer.
pub(crate) struct Peer {
    child: Child,
    stdin: ChildStdin,
    answers: Receiver<String>,
}

impl Python {
    /// Starts a peer whose libraries use this many threads.
    pub(crate) fn start(&self, threads: usize) -> anyhow::Result<Peer> {
        let mut command = Command::new(&self.program);
        command.arg(self.scripts.join("serve.py"));
        for variable in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
            command.env(variable, threads.to_string());
        }
        // The library chooses its kernels and block sizes for the machine itself; an override can only slow it down.
        command.env_remove("OPENBLAS_CORETYPE").env_remove("OPENBLAS_L2_SIZE");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            bail!("the peer has no standard input and output");
        };
        let (send, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Peer { child, stdin, answers })
    }
}

impl Peer {
    /// One call of the peer's function `name`. `None` when it takes longer than `limit`; the peer is then gone.
    pub(crate) fn try_call(&mut self, name: &str, arguments: &Value, limit: Duration) -> anyhow::Result<Option<Value>> {
        let request = serde_json::json!({"call": name, "arguments": arguments});
        writeln!(self.stdin, "{request}").with_context(|| format!("the peer ended before {name}"))?;
        match self.answers.recv_timeout(limit) {
            Ok(line) => {
                let answer: Value = serde_json::from_str(&line).with_context(|| format!("{name} answered {line}"))?;
                if let Some(error) = answer["error"].as_str() {
                    bail!("the peer's {name} failed: {error}");
                }
                Ok(Some(answer))
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                self.child.kill().context("cannot end the peer")?;
                Ok(None)
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => bail!("the peer ended during {name}"),
        }
    }

    /// One call that must end within an hour.
    pub(crate) fn call(&mut self, name: &str, arguments: &Value) -> anyhow::Result<Value> {
        self.try_call(name, arguments, Duration::from_secs(3600))?
            .with_context(|| format!("the peer's {name} took more than an hour"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The times in an answer.
pub(crate) fn seconds(answer: &Value) -> anyhow::Result<Times> {
    times(answer, "seconds")
}

/// The times that an answer has under this name.
pub(crate) fn times(answer: &Value, name: &str) -> anyhow::Result<Times> {
    let list = answer[name].as_array();
    let list = list.with_context(|| format!("the peer's answer has no times under {name:?}"))?;
    Ok(Times::from_seconds(list.iter().filter_map(Value::as_f64).collect()))
}

/// A path as an argument of a peer's function.
pub(crate) fn path(path: &Path) -> Value {
    Value::String(path.to_string_lossy().into_owned())
}
