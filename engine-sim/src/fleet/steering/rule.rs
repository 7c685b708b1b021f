//! Routing rules by name.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A routing rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Rule {
    /// Workers in turn.
    RoundRobin,
    /// Any worker.
    Random,
    /// The least loaded.
    LeastLoaded,
    /// The less loaded of two.
    PowerOfTwoChoices,
    /// The least loaded of the workers of the request's true domain.
    DomainOracle,
    /// ELDR's rule with a fixed table: tau 0.1, no load guard, ties to the lowest index.
    EldrStatic,
    /// Coterie's locality band: tau from the table, load guard, ties by chance.
    LocalityBand,
}

impl Rule {
    /// All of them, load balancers first.
    pub const ALL: [Self; 7] = [
        Self::RoundRobin,
        Self::Random,
        Self::LeastLoaded,
        Self::PowerOfTwoChoices,
        Self::DomainOracle,
        Self::EldrStatic,
        Self::LocalityBand,
    ];

    /// The name used in tables and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RoundRobin => "RoundRobin",
            Self::Random => "Random",
            Self::LeastLoaded => "LeastLoaded",
            Self::PowerOfTwoChoices => "PowerOfTwoChoices",
            Self::DomainOracle => "DomainOracle",
            Self::EldrStatic => "EldrStatic",
            Self::LocalityBand => "LocalityBand",
        }
    }

    /// Whether it looks at load only: what others are compared with.
    pub fn is_load_balancer(self) -> bool {
        matches!(
            self,
            Self::RoundRobin | Self::Random | Self::LeastLoaded | Self::PowerOfTwoChoices
        )
    }

    /// Whether it goes by a predictor.
    pub fn predicts(self) -> bool {
        !self.is_load_balancer() && self != Self::DomainOracle
    }

    /// Whether it needs a fitted table.
    pub fn needs_table(self) -> bool {
        matches!(self, Self::EldrStatic | Self::LocalityBand)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|r| r.as_str().eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|r| r.as_str()).collect();
            format!("no policy {text:?}: {}", names.join(", "))
        })
    }
}
