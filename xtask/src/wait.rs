//! Waiting for something outside this process.

use std::time::{Duration, Instant};

use anyhow::bail;

/// Pause between two looks at a condition of another process, which offers no event to wait on.
const LOOK: Duration = Duration::from_millis(100);

/// Looks until `look` returns a value.
///
/// # Errors
/// When `look` fails, or `limit` passes: the message names what was waited for and `hint`.
pub(crate) fn until<T>(
    what: &str,
    limit: Duration,
    hint: &str,
    mut look: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let start = Instant::now();
    loop {
        if let Some(value) = look()? {
            return Ok(value);
        }
        if start.elapsed() > limit {
            bail!("gave up waiting for {what} after {} s: {hint}", limit.as_secs());
        }
        pause(LOOK);
    }
}

/// Lets time pass between two looks; may return early.
pub(crate) fn pause(time: Duration) {
    std::thread::park_timeout(time);
}

#[cfg(test)]
mod tests {
    use super::until;
    use std::time::Duration;

    #[test]
    fn looks_again_until_there_is_a_value() {
        let mut looks = 0;
        let found = until("three looks", Duration::from_secs(60), "", || {
            looks += 1;
            Ok((looks == 3).then_some(looks))
        });
        assert_eq!(found.unwrap(), 3);
    }

    #[test]
    fn names_what_it_waited_for() {
        let error = until::<()>("the moon", Duration::ZERO, "look up", || Ok(None))
            .unwrap_err()
            .to_string();
        assert!(error.contains("the moon") && error.contains("look up"), "{error}");
    }
}
