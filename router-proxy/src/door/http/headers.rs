//! Which headers cross the router, in either direction.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::dialect::steering::is_steering_header;

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MAX_REQUEST_ID: usize = 128;

/// Headers that belong to one connection.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers that the router sets anew, or that would make an engine's answer unreadable for it.
const SET_ANEW: &[&str] = &["host", "content-length", "content-type", "expect", "accept-encoding"];

/// A client's headers for the workers.
pub(super) fn for_workers(headers: &HeaderMap) -> HeaderMap {
    let named = named_by_connection(headers);
    let crosses = |name: &HeaderName| {
        let name = name.as_str();
        !HOP_BY_HOP.contains(&name)
            && !SET_ANEW.contains(&name)
            && !is_steering_header(name)
            && !named.iter().any(|n| n.eq_ignore_ascii_case(name))
    };
    copy(headers, crosses)
}

/// An engine's headers for the client; the length is set anew, since the body may be.
pub(super) fn for_client(headers: HeaderMap) -> HeaderMap {
    let named = named_by_connection(&headers);
    let crosses = |name: &HeaderName| {
        let name = name.as_str();
        !HOP_BY_HOP.contains(&name)
            && name != "content-length"
            && name != REQUEST_ID.as_str()
            && !named.iter().any(|n| n.eq_ignore_ascii_case(name))
    };
    copy(&headers, crosses)
}

/// The client's request id if it sent a usable one.
pub(super) fn request_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let id = headers.get(REQUEST_ID)?;
    let usable = !id.is_empty() && id.len() <= MAX_REQUEST_ID && id.to_str().is_ok();
    usable.then(|| id.clone())
}

fn copy(headers: &HeaderMap, crosses: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers.iter().filter(|(name, _)| crosses(name)) {
        out.append(name, value.clone());
    }
    out
}

fn named_by_connection(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::CONNECTION);
    let names = values.iter().filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(','));
    names.map(|n| n.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn hop_and_steering_headers_stay_and_the_rest_crosses() {
        let client = map(&[
            ("connection", "keep-alive, X-Private"),
            ("x-private", "1"),
            ("host", "router"),
            ("content-length", "3"),
            ("accept-encoding", "gzip"),
            ("x-request-id", "mine"),
            ("x-data-parallel-rank", "3"),
            ("x-override-bootstrap-room", "7"),
            ("x-gateway-destination-endpoint", "10.0.0.1:80"),
            ("x-prefiller-host-port", "10.0.0.1:80"),
            ("authorization", "Bearer k"),
            ("traceparent", "00-1-1-01"),
            ("x-session-id", "s"),
            ("x-custom", "a"),
            ("x-custom", "b"),
        ]);
        let crossed = for_workers(&client);
        let mut names: Vec<&str> = crossed.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["authorization", "traceparent", "x-custom", "x-session-id"]);
        assert_eq!(crossed.get_all("x-custom").iter().count(), 2);
    }

    #[test]
    fn engine_headers_keep_their_names_but_not_their_length() {
        let engine = map(&[
            ("content-type", "text/event-stream"),
            ("content-length", "3"),
            ("transfer-encoding", "chunked"),
            ("x-request-id", "internal"),
            ("retry-after", "7"),
            ("x-ratelimit-remaining", "0"),
        ]);
        let crossed = for_client(engine);
        assert_eq!(crossed.len(), 3);
        assert_eq!(crossed["retry-after"], "7");
    }

    #[test]
    fn a_request_id_is_taken_only_if_it_is_short_text() {
        assert_eq!(request_id(&map(&[("x-request-id", "abc")])).unwrap(), "abc");
        assert!(request_id(&map(&[("x-request-id", "")])).is_none());
        let mut long = HeaderMap::new();
        long.insert(REQUEST_ID, HeaderValue::from_str(&"a".repeat(129)).unwrap());
        assert!(request_id(&long).is_none());
    }
}
