//! Conservation: every request once, every token once.

use crate::fleet::simulate::{End, Outcome};

/// Something got lost or was counted twice: a fault of the simulator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("simulator: {0}")]
pub struct Unconserved(String);

/// Checks a run whose fleet let the decode workers send the first token: each arrival has one journey that has ended, finished requests
/// have all their tokens and those only, and the steps' batches add up to the tokens that were sent or lost.
pub fn check(outcome: &Outcome, arrivals: usize, first_by_prefill: bool) -> Result<(), Unconserved> {
    let fail = |text: String| Err(Unconserved(text));
    if outcome.journeys.len() != arrivals {
        return fail(format!("{} journeys of {arrivals} arrivals", outcome.journeys.len()));
    }
    let mut tokens = 0u64;
    for (index, journey) in outcome.journeys.iter().enumerate() {
        let wanted = journey.arrival.output_tokens.max(1);
        let complete = journey.tokens == wanted;
        match journey.end {
            End::Pending => return fail(format!("request {index} never ended")),
            End::Finished if !complete => {
                return fail(format!("request {index} has {} of {wanted} tokens", journey.tokens));
            }
            End::Failed | End::Refused if complete && wanted > 1 => {
                return fail(format!("request {index} is complete but failed"));
            }
            _ => {}
        }
        if journey
            .first
            .is_some_and(|first| first < journey.at || first > journey.ended)
        {
            return fail(format!(
                "request {index} has its first token before it came in or after its end"
            ));
        }
        tokens += u64::from(journey.tokens) - u64::from(first_by_prefill && journey.first.is_some());
    }
    let made = outcome.tally.all_step_tokens;
    // A step cut off by a loss made no token.
    if made != tokens {
        return fail(format!("steps made {made} tokens, requests have {tokens}"));
    }
    Ok(())
}
