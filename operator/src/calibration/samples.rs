//! Whether the routers have seen enough requests for a run over live traffic. Asked before a Job is made, so that none fails for want of them.

use crate::{
    context::Context,
    error::Error,
    fleet::{
        secret,
        workers::{self, PodView},
    },
    owner::Fleet,
};

/// What the routers hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Samples {
    /// Enough signed requests.
    Enough,
    /// Too few, and how many there are.
    TooFew(u64),
    /// No router answered.
    Unknown,
}

/// Counts signed requests since a Unix time in milliseconds over all ready routers.
pub async fn count(
    ctx: &Context,
    fleet: &Fleet,
    pods: &[PodView],
    since_ms: u64,
    needed: u64,
) -> Result<Samples, Error> {
    let routers = workers::ready_routers(pods);
    let Some(token) = secret::read(&ctx.client, fleet).await? else {
        return Ok(Samples::Unknown);
    };
    let reports = ctx.routers.statistics(&token, &routers).await;
    let mut answered = false;
    let mut signed = 0_u64;
    for report in reports.into_iter().flatten() {
        answered = true;
        signed = report
            .slides
            .iter()
            // A slide that began before the time counts only from the next one on.
            .filter(|s| s.index.saturating_mul(report.slide_ms) >= since_ms)
            .fold(signed, |sum, s| sum.saturating_add(s.signed));
    }
    Ok(match (answered, signed) {
        (false, _) => Samples::Unknown,
        (true, n) if n >= needed => Samples::Enough,
        (true, n) => Samples::TooFew(n),
    })
}
