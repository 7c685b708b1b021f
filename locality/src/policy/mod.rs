//! Routing policies: which worker gets a request. The router and the fleet simulator use the same code.

mod decision;
mod domain_oracle;
mod eldr_online;
mod frequencies;
#[cfg(test)]
mod frequencies_tests;
mod least_loaded;
mod locality_band;
#[cfg(test)]
mod locality_band_tests;
mod marginal_cost;
mod power_of_two;
mod random;
mod round_robin;
mod rule;
mod ties;

pub use decision::{Decision, Reason};
pub use domain_oracle::{DomainOracle, DomainPools};
pub use eldr_online::{EldrOnline, EldrOnlineError};
pub use frequencies::{Frequencies, FrequenciesError};
pub use least_loaded::LeastLoaded;
pub use locality_band::{LocalityBand, LocalityBandError};
pub use marginal_cost::{MarginalCost, StepLaw, SummaryError, UnionSummary};
pub use power_of_two::PowerOfTwoChoices;
pub use random::Random;
pub use round_robin::RoundRobin;
pub use rule::{Candidates, Policy, WorkerId};
pub use ties::Ties;
