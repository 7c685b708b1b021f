//! The way from this machine to the fleet's router.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, ChildStdout, Stdio},
};

use anyhow::Context as _;

use super::{FLEET, NAMESPACE, target::Target};

/// An address that answers for the router. Ends the forwarding it may need when dropped.
pub(super) struct Router {
    /// `host:port`.
    pub(super) address: String,
    forwarding: Option<Forwarding>,
}

/// kubectl, and its output: kubectl ends when nobody can read what it says of each connection.
struct Forwarding {
    child: Child,
    _output: BufReader<ChildStdout>,
}

/// Finds the router's Service.
pub(super) fn router(target: &Target) -> anyhow::Result<Router> {
    let name = format!("{FLEET}-router");
    if target.local {
        let service = target.kubectl.json(["-n", NAMESPACE, "get", "service", &name])?;
        let address = service["spec"]["clusterIP"]
            .as_str()
            .context("the router's Service has no address")?;
        let port = service["spec"]["ports"][0]["port"]
            .as_u64()
            .context("the router's Service has no port")?;
        return Ok(Router {
            address: format!("{address}:{port}"),
            forwarding: None,
        });
    }
    let mut child = target
        .kubectl
        .command(["-n", NAMESPACE, "port-forward", &format!("service/{name}"), ":80"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start kubectl port-forward")?;
    let mut output = BufReader::new(child.stdout.take().context("kubectl has no output")?);
    let mut line = String::new();
    let read = output.read_line(&mut line);
    let mut router = Router::at(String::new());
    router.forwarding = Some(Forwarding { child, _output: output });
    read?;
    router.address = forwarded(&line).context("kubectl port-forward did not start: is the router's Service there?")?;
    Ok(router)
}

impl Router {
    /// One that is reached directly.
    pub(super) fn at(address: String) -> Self {
        Self {
            address,
            forwarding: None,
        }
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        if let Some(Forwarding { child, .. }) = &mut self.forwarding {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The address in kubectl's "Forwarding from 127.0.0.1:43211 -> 8080".
fn forwarded(line: &str) -> Option<String> {
    line.strip_prefix("Forwarding from ")?
        .split_whitespace()
        .next()
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::forwarded;

    #[test]
    fn the_forwarded_port_is_read() {
        assert_eq!(
            forwarded("Forwarding from 127.0.0.1:43211 -> 8080\n").unwrap(),
            "127.0.0.1:43211"
        );
        assert_eq!(forwarded("error: x"), None);
    }
}
