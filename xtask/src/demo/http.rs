//! A small HTTP/1.1 client: one request, one connection, one JSON answer.

use std::{
    io::{Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// Longest answer that is read, in bytes.
const LIMIT: u64 = 16 << 20;

/// Posts JSON and returns the JSON that comes back.
///
/// # Errors
/// When there is no connection, or the answer is not 2xx or not JSON.
pub(super) fn post(address: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
    let (status, body) = exchange(address, "POST", path, Some(body), Duration::from_secs(60))
        .with_context(|| format!("no answer from http://{address}{path}"))?;
    let text = String::from_utf8_lossy(&body);
    if !(200..300).contains(&status) {
        bail!(
            "http://{address}{path} answered {status}: {}",
            text.chars().take(500).collect::<String>()
        );
    }
    serde_json::from_str(&text).with_context(|| format!("http://{address}{path} did not answer JSON"))
}

/// Whether a path answers 200.
pub(super) fn healthy(address: &str, path: &str) -> bool {
    exchange(address, "GET", path, None, Duration::from_secs(1)).is_ok_and(|(status, _)| status == 200)
}

fn exchange(
    address: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
    limit: Duration,
) -> anyhow::Result<(u16, Vec<u8>)> {
    let target = address.to_socket_addrs()?.next().context("no such address")?;
    let mut stream = TcpStream::connect_timeout(&target, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(limit))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut bytes = Vec::new();
    stream.take(LIMIT).read_to_end(&mut bytes)?;
    parse(&bytes)
}

/// Status and body of a whole answer.
fn parse(bytes: &[u8]) -> anyhow::Result<(u16, Vec<u8>)> {
    let end = bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .context("the answer has no end of headers")?;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|text| text.parse().ok())
        .context("the answer has no status")?;
    let body = &bytes[end + 4..];
    let chunked = head
        .lines()
        .any(|line| line.starts_with("transfer-encoding:") && line.contains("chunked"));
    Ok((status, if chunked { unchunk(body)? } else { body.to_vec() }))
}

fn unchunk(mut rest: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest
            .windows(2)
            .position(|window| window == b"\r\n")
            .context("the answer is cut short")?;
        let size = String::from_utf8_lossy(&rest[..line]);
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)
            .context("a chunk has no size")?;
        rest = &rest[line + 2..];
        if size == 0 {
            return Ok(body);
        }
        let chunk = rest.get(..size).context("the answer is cut short")?;
        body.extend_from_slice(chunk);
        rest = rest.get(size + 2..).context("the answer is cut short")?;
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn answers_of_both_framings_are_read() {
        let plain = parse(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        assert_eq!(plain, (200, b"{}".to_vec()));
        let chunked =
            parse(b"HTTP/1.1 503 X\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n1\r\nd\r\n0\r\n\r\n").unwrap();
        assert_eq!(chunked, (503, b"abcd".to_vec()));
    }

    #[test]
    fn cut_answers_are_errors() {
        assert!(parse(b"HTTP/1.1 200 OK\r\n").is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\nabc").is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nabc").is_err());
    }
}
