//! What a policy goes by.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// Where the decode frequencies to expect of a request come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Predictor {
    /// Nothing is predicted.
    None,
    /// Its own prefill frequencies.
    Prefill,
    /// The decode frequencies it will really have: what no router can know, the head-room of a perfect predictor.
    Truth,
}

impl Predictor {
    /// All that predict.
    pub const ALL: [Self; 2] = [Self::Prefill, Self::Truth];

    /// The name used in tables and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Prefill => "prefill",
            Self::Truth => "truth",
        }
    }
}

impl fmt::Display for Predictor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Predictor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [Self::None].into_iter().chain(Self::ALL);
        known
            .into_iter()
            .find(|p| p.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("no predictor {text:?}: prefill, truth or none"))
    }
}
