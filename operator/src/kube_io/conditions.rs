//! Conditions: a verdict becomes a condition that keeps its transition time while its status stays.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nothing can be said.
    Unknown,
}

impl Truth {
    /// As the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// What a controller concluded about one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Condition type.
    pub kind: &'static str,
    /// Status.
    pub truth: Truth,
    /// Reason, of the closed set.
    pub reason: &'static str,
    /// A sentence for a person.
    pub message: String,
}

impl Verdict {
    /// A verdict.
    pub fn new(kind: &'static str, truth: impl Into<Truth>, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            truth: truth.into(),
            reason,
            message: message.into(),
        }
    }
}

/// A condition whose status changed, or that is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Condition type.
    pub kind: String,
    /// New status.
    pub status: String,
    /// New reason.
    pub reason: String,
    /// New message.
    pub message: String,
}

/// The conditions that say `verdicts`, and which of them changed their status or reason against `current`.
pub fn merge(
    current: &[Condition],
    verdicts: &[Verdict],
    generation: Option<i64>,
    now: &Time,
) -> (Vec<Condition>, Vec<Transition>) {
    let mut transitions = Vec::new();
    let merged = verdicts
        .iter()
        .map(|verdict| {
            let old = current.iter().find(|c| c.type_ == verdict.kind);
            let same_status = old.filter(|c| c.status == verdict.truth.as_str());
            let condition = Condition {
                type_: verdict.kind.to_owned(),
                status: verdict.truth.as_str().to_owned(),
                reason: verdict.reason.to_owned(),
                message: verdict.message.clone(),
                observed_generation: generation,
                last_transition_time: same_status.map_or_else(|| now.clone(), |c| c.last_transition_time.clone()),
            };
            if old.is_none_or(|c| c.status != condition.status || c.reason != condition.reason) {
                transitions.push(Transition {
                    kind: condition.type_.clone(),
                    status: condition.status.clone(),
                    reason: condition.reason.clone(),
                    message: condition.message.clone(),
                });
            }
            condition
        })
        .collect();
    (merged, transitions)
}

/// Those of `current` that are among `kinds`, in the order of `kinds`.
pub fn owned(current: &[Condition], kinds: &[&str]) -> Vec<Condition> {
    kinds
        .iter()
        .filter_map(|kind| current.iter().find(|c| c.type_ == *kind))
        .cloned()
        .collect()
}

/// Whether a condition is True for this generation of the spec.
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    conditions.iter().any(|c| c.type_ == kind && c.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::jiff::Timestamp;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn the_transition_time_moves_with_the_status_only() {
        let verdict = |truth, message: &str| Verdict::new("Ready", truth, "AsDeclared", message);
        let (first, changed) = merge(&[], &[verdict(true, "a")], Some(1), &at(1));
        assert_eq!(changed.len(), 1, "a new condition is a transition");
        let (second, changed) = merge(&first, &[verdict(true, "b")], Some(2), &at(2));
        assert_eq!(second[0].last_transition_time, at(1));
        assert_eq!(
            (second[0].message.as_str(), second[0].observed_generation),
            ("b", Some(2))
        );
        assert!(changed.is_empty(), "another message alone is no transition");
        let (third, changed) = merge(&second, &[verdict(false, "b")], Some(2), &at(3));
        assert_eq!(third[0].last_transition_time, at(3));
        assert_eq!(changed.len(), 1);
    }
}
