//! The admin port's bearer key.

use std::path::PathBuf;

use http::{HeaderMap, HeaderValue, StatusCode, header};

const MAX_KEY_BYTES: usize = 4096;

/// Where the key is, if there is one. Read for every request, so that a rotated Secret counts at once.
#[derive(Clone, Debug)]
pub(crate) struct Token(Option<PathBuf>);

impl Token {
    /// `None`: no key; the port must then be on loopback.
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        Self(file)
    }

    /// Whether a request may pass; else the status and a sentence.
    pub(crate) async fn check(&self, headers: &HeaderMap) -> Result<(), (StatusCode, String)> {
        let Some(file) = &self.0 else {
            return Ok(());
        };
        let key = match tokio::fs::read(file).await {
            Ok(key) => key,
            Err(error) => {
                tracing::error!(file = %file.display(), %error, "the admin key cannot be read");
                return Err((
                    StatusCode::SERVICE_UNAVAILABLE,
                    "the admin key cannot be read; see the router's log".into(),
                ));
            }
        };
        let key = key.trim_ascii();
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            return Err((
                StatusCode::SERVICE_UNAVAILABLE,
                "the admin key file holds no usable key".into(),
            ));
        }
        let given = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let given = given.and_then(bearer).unwrap_or_default();
        if same(given, key) {
            Ok(())
        } else {
            Err((
                StatusCode::UNAUTHORIZED,
                "send the fleet's admin key as `Authorization: Bearer <key>`".into(),
            ))
        }
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, key) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| key.trim_ascii())
}

/// Compares in a time that depends on the key's length alone, so that nobody can guess it byte by byte.
fn same(given: &[u8], key: &[u8]) -> bool {
    let mut difference = u8::from(given.len() != key.len());
    for (index, byte) in key.iter().enumerate() {
        difference |= byte ^ given.get(index).copied().unwrap_or(!byte);
    }
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_key_is_the_key() {
        assert!(same(b"secret", b"secret"));
        for wrong in [&b""[..], b"secre", b"secret1", b"Secret", b"terces"] {
            assert!(!same(wrong, b"secret"));
        }
        assert_eq!(bearer(b"bearer  abc "), Some(&b"abc"[..]));
        assert_eq!(bearer(b"Basic abc"), None);
        assert_eq!(bearer(b"Bearer"), None);
    }
}
