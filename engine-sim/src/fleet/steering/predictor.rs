//! What a policy goes by.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// Where the decode frequencies to expect of a request come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Predictor {
    /// Nothing is predicted.
    None,
    /// Its own prefill frequencies.
    Prefill,
    /// A learned map of its prefill frequencies, mixed with them by confidence.
    PrefillMap,
    /// A learned map of its text.
    Text,
    /// Both maps and its prefill frequencies, mixed by confidence.
    Mixed,
    /// The decode frequencies it will really have: what no router can know, the head-room of a perfect predictor.
    Truth,
}

impl Predictor {
    /// All that predict.
    pub const ALL: [Self; 5] = [Self::Prefill, Self::PrefillMap, Self::Text, Self::Mixed, Self::Truth];

    /// The name used in tables and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Prefill => "prefill",
            Self::PrefillMap => "prefill-map",
            Self::Text => "text",
            Self::Mixed => "mixed",
            Self::Truth => "truth",
        }
    }

    /// Whether it reads the prompt's text.
    pub fn needs_text(self) -> bool {
        matches!(self, Self::Text | Self::Mixed)
    }

    /// Whether it is learned.
    pub fn is_learned(self) -> bool {
        matches!(self, Self::PrefillMap | Self::Text | Self::Mixed)
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
        let found = known.clone().find(|p| p.as_str().eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            let names: Vec<&str> = known.map(Self::as_str).collect();
            format!("no predictor {text:?}: {}", names.join(", "))
        })
    }
}
