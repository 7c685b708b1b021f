//! Whether engines return the experts that signatures are made from.

use coterie_crds::conditions::{self, reason};
use coterie_locality::drift::SlideSummary;

use crate::kube_io::conditions::{Truth, Verdict};

/// Signed share below which signatures count as unavailable.
const ENOUGH: f64 = 0.9;

/// Requests of a window, signed and not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    signed: u64,
    missing: u64,
    malformed: u64,
}

impl Coverage {
    /// Adds up a window.
    pub fn of<'a>(window: impl Iterator<Item = &'a SlideSummary>) -> Self {
        window.fold(Self::default(), |mut sum, slide| {
            sum.signed = sum.signed.saturating_add(slide.signed);
            for (reason, count) in &slide.missing {
                let unreadable = matches!(reason.as_str(), "Malformed" | "Geometry");
                let into = if unreadable {
                    &mut sum.malformed
                } else {
                    &mut sum.missing
                };
                *into = into.saturating_add(*count);
            }
            sum
        })
    }

    /// Signed share; `None` without requests.
    pub fn share(&self) -> Option<f64> {
        let all = self.signed.saturating_add(self.missing).saturating_add(self.malformed);
        (all > 0).then(|| self.signed as f64 / all as f64)
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
                "prefill workers return experts with their answers",
            ),
            Some(_) if self.malformed > self.missing => Verdict::new(
                kind,
                false,
                reason::EXPERTS_MALFORMED,
                "prefill workers return experts that cannot be read or have another geometry than spec.model.geometry; requests are routed least-loaded",
            ),
            Some(_) => Verdict::new(
                kind,
                false,
                reason::EXPERTS_MISSING,
                "prefill workers answer without routed_experts; requests are routed least-loaded. See the prefill pods' log and --enable-return-routed-experts",
            ),
        }
    }
}
