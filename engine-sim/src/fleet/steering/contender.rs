//! One policy with one predictor, ready to be built for every router of a run.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use coterie_locality::policy::{
    Candidates, Decision, DomainOracle, DomainPools, Frequencies, LeastLoaded, LocalityBand, MarginalCost, Policy,
    PowerOfTwoChoices, Random, RoundRobin, Ties, WorkerId,
};
use rand::RngCore;
use serde::{Serialize, Serializer};

use super::calibration::{Calibration, CalibrationError};
use super::predictor::Predictor;
use super::rule::Rule;
use crate::fleet::simulate::{Refit, Steering};

/// As ELDR's camera-ready runs.
const BLIND: Refit = Refit::Blind {
    window_s: 5.0,
    every_s: 1.0,
};
/// The drift monitor's window is ten minutes of a live fleet; simulated drifts are quicker, and so is this.
const ON_SIGNAL: Refit = Refit::OnSignal {
    window_s: 20.0,
    cooldown_s: 30.0,
};

/// A rule and what it goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Contender {
    /// The rule.
    pub rule: Rule,
    /// The predictor; [`Predictor::None`] for rules that go by none.
    pub predictor: Predictor,
}

/// Why a contender cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ContenderError {
    /// Calibration failed.
    #[error("{0}: {1}")]
    Calibration(Contender, CalibrationError),
    /// A policy refused its parameters.
    #[error("{0}: {1}")]
    Parameters(Contender, String),
}

impl Contender {
    /// A rule with a predictor; rules that go by none get none.
    pub fn new(rule: Rule, predictor: Predictor) -> Self {
        Self {
            rule,
            predictor: if rule.predicts() { predictor } else { Predictor::None },
        }
    }

    /// Every rule with every predictor.
    pub fn all(rules: &[Rule], predictors: &[Predictor]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for rule in rules {
            for predictor in predictors {
                let contender = Self::new(*rule, *predictor);
                if !all.contains(&contender) {
                    all.push(contender);
                }
            }
        }
        all
    }

    /// One router's policy and knowledge, for a fleet that starts with `workers` workers.
    pub fn steering(&self, calibration: &Calibration, workers: usize) -> Result<Steering, ContenderError> {
        let fitted = calibration
            .fitted(self.rule, self.predictor, workers)
            .map_err(|e| ContenderError::Calibration(*self, e))?;
        let tau = fitted.table.as_ref().map_or(0.0, |t| t.tau);
        let bad = |e: &dyn fmt::Display| ContenderError::Parameters(*self, e.to_string());
        let marginal = Arc::new(MarginalCost::new(&calibration.judged().geometry));
        let policy: Box<dyn Policy> = match self.rule {
            Rule::RoundRobin => Box::new(RoundRobin::default()),
            Rule::Random => Box::new(Random),
            Rule::LeastLoaded => Box::new(LeastLoaded),
            Rule::PowerOfTwoChoices => Box::new(PowerOfTwoChoices),
            Rule::DomainOracle => Box::new(DomainOracle {
                pools: DomainPools::new(&calibration.domain_shares(), workers),
            }),
            Rule::EldrStatic | Rule::EldrOnline => {
                let mut band = LocalityBand::new(tau, 1, None).map_err(|e| bad(&e))?;
                band.ties = Ties::LowestIndex;
                Box::new(band)
            }
            Rule::LocalityBand | Rule::BandOnSignal => {
                Box::new(LocalityBand::new(tau, 1, Some(1.5)).map_err(|e| bad(&e))?)
            }
            Rule::MarginalCost | Rule::MarginalCostTable => Box::new(Shared(Arc::clone(&marginal))),
        };
        Ok(Steering {
            policy,
            knowledge: Arc::clone(&fitted.knowledge),
            table: fitted.table.clone(),
            refit: match self.rule {
                Rule::EldrOnline => Some(BLIND),
                Rule::BandOnSignal => Some(ON_SIGNAL),
                _ => None,
            },
            marginal: matches!(self.rule, Rule::MarginalCost | Rule::MarginalCostTable).then_some(marginal),
        })
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.predictor {
            Predictor::None => write!(f, "{}", self.rule),
            predictor => write!(f, "{}/{predictor}", self.rule),
        }
    }
}

impl FromStr for Contender {
    type Err = String;

    /// `Rule` or `Rule/predictor`; a rule that predicts goes by prefill frequencies unless told.
    fn from_str(text: &str) -> Result<Self, String> {
        let (rule, predictor) = text.split_once('/').unwrap_or((text, "prefill"));
        Ok(Self::new(rule.parse()?, predictor.parse()?))
    }
}

impl Serialize for Contender {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One policy, held by its router and by what exchanges its summaries.
#[derive(Debug)]
struct Shared(Arc<MarginalCost>);

impl Policy for Shared {
    fn choose(&self, candidates: &Candidates<'_>, rng: &mut dyn RngCore) -> Option<Decision> {
        self.0.choose(candidates, rng)
    }

    fn started(&self, worker: WorkerId, frequencies: Option<&Frequencies>, now: f64) {
        self.0.started(worker, frequencies, now);
    }

    fn finished(&self, worker: WorkerId, frequencies: Option<&Frequencies>, now: f64) {
        self.0.finished(worker, frequencies, now);
    }

    fn observed(&self, worker: WorkerId, load: f32, seconds: f64) {
        self.0.observed(worker, load, seconds);
    }

    fn workers(&self, live: &[WorkerId]) {
        self.0.workers(live);
    }
}
