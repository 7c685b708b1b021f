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
    /// The same with centroids fitted anew every second on the last five seconds, as ELDR's camera-ready runs.
    EldrOnline,
    /// Coterie's locality band: tau from the table, load guard, ties by chance.
    LocalityBand,
    /// The same, centroids fitted anew when skew or fit says that traffic has drifted.
    BandOnSignal,
    /// Marginal cost, without a table.
    MarginalCost,
    /// Marginal cost, its forecast sharpened by a table's similarity.
    MarginalCostTable,
}

impl Rule {
    /// All of them, load balancers first.
    pub const ALL: [Self; 11] = [
        Self::RoundRobin,
        Self::Random,
        Self::LeastLoaded,
        Self::PowerOfTwoChoices,
        Self::DomainOracle,
        Self::EldrStatic,
        Self::EldrOnline,
        Self::LocalityBand,
        Self::BandOnSignal,
        Self::MarginalCost,
        Self::MarginalCostTable,
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
            Self::EldrOnline => "EldrOnline",
            Self::LocalityBand => "LocalityBand",
            Self::BandOnSignal => "BandOnSignal",
            Self::MarginalCost => "MarginalCost",
            Self::MarginalCostTable => "MarginalCostTable",
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

    /// Whether its table is fitted as ELDR fits.
    pub fn is_eldr(self) -> bool {
        matches!(self, Self::EldrStatic | Self::EldrOnline)
    }

    /// Whether it needs a fitted table.
    pub fn needs_table(self) -> bool {
        !matches!(self, Self::DomainOracle | Self::MarginalCost) && !self.is_load_balancer()
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
