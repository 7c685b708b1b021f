//! Which generation of the routing document all ready routers route by. Asked only while a change is pending.

use super::workers::RouterPod;
use crate::{context::Context, router_admin::AdminError};
use coterie_crds::admin::State;

/// What the routers said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The lowest generation of all ready routers; `None` when one did not answer, or none is ready.
    pub generation: Option<u64>,
    /// The highest generation that any router showed.
    pub highest: u64,
    /// A router that is behind, and why.
    pub waiting_for: Option<String>,
}

/// Asks every ready router.
pub async fn ask(ctx: &Context, token: &str, routers: &[RouterPod], wanted: u64) -> Acknowledgement {
    let answers = ctx.routers.states(token, routers).await;
    combine(routers, &answers, wanted)
}

fn combine(routers: &[RouterPod], answers: &[Result<State, AdminError>], wanted: u64) -> Acknowledgement {
    let mut result = Acknowledgement::default();
    let mut lowest = None;
    let mut complete = !routers.is_empty();
    for (router, answer) in routers.iter().zip(answers) {
        match answer {
            Ok(state) => {
                result.highest = result.highest.max(state.generation);
                lowest = Some(lowest.map_or(state.generation, |l: u64| l.min(state.generation)));
                if state.generation < wanted && result.waiting_for.is_none() {
                    let problem = state.problem.as_ref().map(|p| format!(": {p}")).unwrap_or_default();
                    result.waiting_for = Some(format!(
                        "{} is at generation {}{problem}",
                        router.name, state.generation
                    ));
                }
            }
            Err(error) => {
                complete = false;
                result
                    .waiting_for
                    .get_or_insert_with(|| format!("{} does not answer on its admin port: {error}", router.name));
            }
        }
    }
    result.generation = lowest.filter(|_| complete);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_silent_or_late_router_holds_the_acknowledgement() {
        let routers: Vec<RouterPod> = ["a", "b"]
            .map(|name| RouterPod {
                name: name.into(),
                ip: String::new(),
            })
            .into();
        let at = |generation| {
            Ok(State {
                generation,
                ..State::default()
            })
        };
        let both = combine(&routers, &[at(3), at(2)], 3);
        assert_eq!((both.generation, both.highest), (Some(2), 3));
        assert!(both.waiting_for.unwrap().starts_with("b is at generation 2"));
        let silent = combine(&routers, &[at(3), Err(AdminError::TooLong)], 3);
        assert_eq!(silent.generation, None);
        assert_eq!(combine(&[], &[], 3).generation, None, "no router acknowledges nothing");
    }
}
