//! The link between this machine and the node, and the routes over it. Nothing else of this machine's network is touched.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::{
    layout::{HOST_IP, LINK, Layout, NODE_IP, PODS, SERVICES},
    node::{Node, pid_file},
};
use crate::{
    command::{command, output, quiet, succeeds},
    processes::Process,
};

/// Refuses where another cluster uses the addresses; removes what a dead one left.
pub(crate) fn claim(layout: &Layout) -> anyhow::Result<()> {
    match owner()? {
        Some(dir) if dir != layout.dir && Process::recorded(&pid_file(&dir)).is_some() => bail!(
            "another checkout's cluster uses the addresses: {}. Stop it there with `cargo xtask cluster down`",
            dir.display()
        ),
        Some(_) => release()?,
        None => {}
    }
    let routes: Value = serde_json::from_str(&output(&mut command("ip", ["-j", "-4", "route"]))?)?;
    if let Some(taken) = overlap(&routes) {
        bail!(
            "this machine already routes {taken}, which the cluster needs ({PODS}, {SERVICES}, {NODE_IP}/30): stop what uses it"
        );
    }
    Ok(())
}

/// Connects the node. The link's alias says whose it is.
pub(crate) fn connect(layout: &Layout, node: &Node) -> anyhow::Result<()> {
    let pid = node.pid().to_string();
    let ip = |args: &[&str]| quiet(&mut command("ip", args));
    ip(&[
        "link", "add", LINK, "type", "veth", "peer", "name", "eth0", "netns", &pid,
    ])?;
    quiet(command("ip", ["link", "set", LINK, "alias"]).arg(&layout.dir))?;
    ip(&["addr", "add", &format!("{HOST_IP}/30"), "dev", LINK])?;
    ip(&["link", "set", LINK, "up"])?;
    let inside = |args: &[&str]| quiet(node.enter("ip").args(args));
    inside(&["addr", "add", &format!("{NODE_IP}/30"), "dev", "eth0"])?;
    inside(&["link", "set", "eth0", "up"])?;
    inside(&["route", "add", "default", "via", HOST_IP])?;
    for range in [SERVICES, PODS] {
        ip(&["route", "add", range, "via", NODE_IP])?;
    }
    Ok(())
}

/// Removes the link if it is this state folder's; its routes go with it.
pub(crate) fn disconnect(layout: &Layout) -> anyhow::Result<()> {
    if owner()?.is_some_and(|dir| dir == layout.dir) {
        release()
    } else {
        Ok(())
    }
}

fn release() -> anyhow::Result<()> {
    // It vanishes by itself once the node's namespace is gone: both may happen.
    let deleted = quiet(&mut command("ip", ["link", "del", LINK]));
    if succeeds(&mut command("ip", ["link", "show", LINK])) {
        deleted
    } else {
        Ok(())
    }
}

/// State folder of the cluster that the link belongs to.
fn owner() -> anyhow::Result<Option<PathBuf>> {
    let Ok(text) = output(&mut command("ip", ["-j", "link", "show", LINK])) else {
        return Ok(None);
    };
    let links: Value = serde_json::from_str(&text).context("cannot read the output of `ip -j link`")?;
    let alias = links[0]["ifalias"].as_str().unwrap_or_default();
    Ok(Some(Path::new(alias).to_owned()))
}

/// The first existing route that overlaps the cluster's ranges.
fn overlap(routes: &Value) -> Option<String> {
    let node = format!("{NODE_IP}/30");
    let wanted = [PODS, SERVICES, &node].map(parse);
    routes.as_array()?.iter().find_map(|route| {
        let range = route["dst"].as_str().filter(|dst| *dst != "default")?;
        let found = parse(range)?;
        wanted
            .iter()
            .flatten()
            .any(|range| overlaps(*range, found))
            .then(|| range.to_owned())
    })
}

/// Address and prefix length of a range; a lone address is a /32.
fn parse(range: &str) -> Option<(u32, u32)> {
    let (address, bits) = range.split_once('/').unwrap_or((range, "32"));
    Some((
        address.parse::<std::net::Ipv4Addr>().ok()?.to_bits(),
        bits.parse().ok().filter(|bits| *bits <= 32)?,
    ))
}

fn overlaps(a: (u32, u32), b: (u32, u32)) -> bool {
    let shift = 32 - a.1.min(b.1);
    a.0.checked_shr(shift) == b.0.checked_shr(shift)
}

#[cfg(test)]
mod tests {
    use super::overlap;
    use serde_json::json;

    #[test]
    fn foreign_ranges_are_noticed() {
        assert_eq!(
            overlap(&json!([{"dst": "default"}, {"dst": "192.0.2.0/24"}, {"dst": "10.97.0.0/16"}])),
            None
        );
        assert_eq!(
            overlap(&json!([{"dst": "10.96.5.0/24"}])),
            Some("10.96.5.0/24".to_owned())
        );
        assert_eq!(overlap(&json!([{"dst": "10.0.0.0/8"}])), Some("10.0.0.0/8".to_owned()));
        assert_eq!(overlap(&json!([{"dst": "10.244.0.7"}])), Some("10.244.0.7".to_owned()));
    }
}
