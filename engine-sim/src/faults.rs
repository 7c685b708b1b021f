//! Faults on demand: rules that make answers late, wrong or absent.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fault {
    /// The request waits so many milliseconds before it is looked at.
    DelayMs {
        /// Milliseconds.
        value: u64,
    },
    /// The request is answered with this status and an error body.
    Status {
        /// HTTP status, 400 to 599.
        value: u16,
    },
    /// The request is never answered.
    Hang,
    /// The connection breaks: a stream after so many tokens, any other answer in its middle.
    CutStream {
        /// Tokens that still arrive.
        #[serde(default)]
        after_tokens: usize,
    },
    /// Answers carry no expert choices although capture is on.
    NoExperts,
    /// Answers carry expert choices that cannot be used.
    MalformedExperts {
        /// In which way.
        #[serde(default)]
        value: Malformation,
    },
    /// A request that offers a KV hand-off is refused with 429, and the prefill worker is told.
    RejectKv,
    /// `/health` and `/ping` answer 503.
    RefuseHealth,
}

/// How expert choices are broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Malformation {
    /// The array ends in its middle.
    #[default]
    Truncated,
    /// The text is no base64.
    NotBase64,
    /// The array has one layer more than the model.
    WrongShape,
    /// Every expert id is 255.
    WrongExpert,
}

/// A fault with its scope.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// Given by the server.
    #[serde(default)]
    pub id: u64,
    /// What goes wrong.
    #[serde(flatten)]
    pub fault: Fault,
    /// Only requests whose path starts with this; null: all but `/sim/` and `/metrics`.
    #[serde(default)]
    pub path: Option<String>,
    /// How many requests it still hits; null: all, until cleared.
    #[serde(default)]
    pub count: Option<u64>,
    /// Requests it has hit.
    #[serde(default)]
    pub hits: u64,
}

/// The rules in force.
#[derive(Default)]
pub struct Faults {
    rules: Mutex<(u64, Vec<Rule>)>,
}

impl Faults {
    /// Adds a rule and returns it with its id. The rule applies at once.
    pub fn add(&self, mut rule: Rule) -> Result<Rule, String> {
        if let Fault::Status { value } = rule.fault
            && !(400..=599).contains(&value)
        {
            return Err(format!("a status fault needs a status from 400 to 599, got {value}"));
        }
        if rule.count == Some(0) {
            return Err("count must be at least 1, or null for all requests until DELETE".to_owned());
        }
        let mut guard = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        guard.0 += 1;
        (rule.id, rule.hits) = (guard.0, 0);
        guard.1.push(rule.clone());
        Ok(rule)
    }

    /// All rules, also used-up ones.
    pub fn list(&self) -> Vec<Rule> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).1.clear();
    }

    /// The first fault for `path` of the kind that `pick` takes; counts as a hit.
    pub fn hit<T>(&self, path: &str, pick: impl Fn(Fault) -> Option<T>) -> Option<T> {
        let mut guard = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        guard.1.iter_mut().find_map(|rule| {
            let in_scope = match &rule.path {
                Some(prefix) => path.starts_with(prefix),
                None => !path.starts_with("/sim/") && !path.starts_with("/metrics"),
            };
            if !in_scope || rule.count.is_some_and(|count| rule.hits >= count) {
                return None;
            }
            let picked = pick(rule.fault)?;
            rule.hits += 1;
            Some(picked)
        })
    }

    /// Whether a hand-off offered on `path` is to be rejected.
    pub fn reject_kv(&self, path: &str) -> bool {
        self.hit(path, |fault| (fault == Fault::RejectKv).then_some(()))
            .is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_scoped_and_counted() {
        let faults = Faults::default();
        let rule: Rule = serde_json::from_str(r#"{"kind":"status","value":503,"path":"/v1/","count":2}"#).unwrap();
        faults.add(rule).unwrap();
        let hit = |path| faults.hit(path, |f| matches!(f, Fault::Status { .. }).then_some(f));
        assert_eq!(hit("/health"), None);
        assert_eq!(hit("/v1/completions"), Some(Fault::Status { value: 503 }));
        assert!(hit("/v1/models").is_some());
        assert!(hit("/v1/models").is_none());
        assert_eq!(faults.list()[0].hits, 2);
        faults.clear();
        assert!(faults.list().is_empty());
    }

    #[test]
    fn nonsense_is_refused() {
        let faults = Faults::default();
        for bad in [r#"{"kind":"status","value":200}"#, r#"{"kind":"hang","count":0}"#] {
            assert!(faults.add(serde_json::from_str(bad).unwrap()).is_err());
        }
        assert!(serde_json::from_str::<Rule>(r#"{"kind":"explode"}"#).is_err());
    }
}
