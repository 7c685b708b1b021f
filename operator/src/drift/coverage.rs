//! Whether requests have signatures, and what they are made from.

use coterie_crds::{
    admin::Source,
    conditions::{self, reason},
};

use super::window::Combined;
use crate::kube_io::conditions::{Truth, Verdict};

/// Signed share below which signatures count as unavailable.
const ENOUGH: f64 = 0.9;

/// Requests of a window, signed and not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Signed by prefill counts.
    counted: u64,
    /// Signed by text.
    by_text: u64,
    missing: u64,
    malformed: u64,
    no_text: u64,
    no_text_source: u64,
}

impl Coverage {
    /// Adds up the newest window.
    pub fn of(combined: &Combined) -> Self {
        let mut sum = Self::default();
        for source in [Source::Prefill, Source::Text] {
            for slide in combined.newest_window(source) {
                let signed = match source {
                    Source::Prefill => &mut sum.counted,
                    Source::Text => &mut sum.by_text,
                };
                *signed = signed.saturating_add(slide.signed);
                for (reason, count) in &slide.missing {
                    let into = match reason.as_str() {
                        "Malformed" | "Geometry" => &mut sum.malformed,
                        "NoText" => &mut sum.no_text,
                        "NoTextSource" => &mut sum.no_text_source,
                        _ => &mut sum.missing,
                    };
                    *into = into.saturating_add(*count);
                }
            }
        }
        sum
    }

    /// Signed share; `None` without requests.
    pub fn share(&self) -> Option<f64> {
        let signed = self.counted.saturating_add(self.by_text);
        let unsigned = [self.missing, self.malformed, self.no_text, self.no_text_source];
        let all = unsigned.into_iter().fold(signed, u64::saturating_add);
        (all > 0).then(|| signed as f64 / all as f64)
    }

    /// What signatures are made from: a source that signs fewer than one in 20 is not named beside the other.
    pub fn source(&self) -> &'static str {
        let few = self.counted.saturating_add(self.by_text) / 20;
        match (self.counted, self.by_text) {
            (0, 0) => "None",
            (counted, by_text) if counted > few && by_text > few => "Mixed",
            (counted, by_text) if by_text > counted => "Text",
            _ => "Prefill",
        }
    }

    /// The condition. Its message has no number that would change with every window.
    pub fn verdict(&self) -> Verdict {
        let kind = conditions::SIGNATURES_AVAILABLE;
        match self.share() {
            None => Verdict::new(kind, Truth::Unknown, reason::NO_TRAFFIC, "no request in the window"),
            Some(share) if share >= ENOUGH => Verdict::new(
                kind,
                true,
                reason::COVERED,
                match self.source() {
                    "Text" => "requests are told apart by their text",
                    "Mixed" => {
                        "prefill workers return experts with some answers; other requests are told apart by their text"
                    }
                    _ => "prefill workers return experts with their answers",
                },
            ),
            Some(_) => {
                let (reason, message) = self.most_common();
                Verdict::new(kind, false, reason, message)
            }
        }
    }

    fn most_common(&self) -> (&'static str, &'static str) {
        let most = self
            .missing
            .max(self.malformed)
            .max(self.no_text)
            .max(self.no_text_source);
        if self.missing == most {
            return (
                reason::EXPERTS_MISSING,
                "prefill workers answer without routed_experts; requests are routed least-loaded. See the prefill pods' log and --enable-return-routed-experts",
            );
        }
        if self.malformed == most {
            return (
                reason::EXPERTS_MALFORMED,
                "prefill workers return experts that cannot be read or have another geometry than spec.model.geometry; requests are routed least-loaded",
            );
        }
        if self.no_text == most {
            return (
                reason::TEXT_MISSING,
                "requests carry token ids instead of text; they are routed least-loaded",
            );
        }
        (
            reason::NO_TEXT_SOURCE,
            "spec.routing.signature.source is Text, and there is no table that knows text; requests are routed least-loaded. Calibrate with prompts",
        )
    }
}
