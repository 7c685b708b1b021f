//! Waiting for conditions: polls until true, and says what it last saw when it gives up.

use std::{future::Future, time::Duration};

use anyhow::{Result, bail};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(200);

/// What a look found.
#[derive(Debug)]
pub enum Look<T> {
    /// The condition holds.
    Done(T),
    /// Not yet; what was seen instead.
    NotYet(String),
}

/// Looks until the condition holds.
///
/// # Errors
/// When it does not within `limit`: the message has what was last seen.
pub async fn until<T, F>(what: &str, limit: Duration, mut look: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<Look<T>>>,
{
    let deadline = Instant::now() + limit;
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = "nothing".to_owned();
    while Instant::now() < deadline {
        ticks.tick().await;
        match look().await {
            Ok(Look::Done(value)) => return Ok(value),
            Ok(Look::NotYet(what)) => seen = what,
            Err(error) => seen = format!("error: {error:#}"),
        }
    }
    bail!("gave up waiting for {what} after {limit:?}; last seen: {seen}")
}
