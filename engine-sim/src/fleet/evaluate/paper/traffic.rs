//! The paper's two mixes, made up: domains by their shares, prompts of 4 to 1024 tokens.

use rand::Rng;
use rayon::prelude::*;

use super::published::{Change, LANGUAGE, LANGUAGE_OTHERS, Rate, TASK, TASK_OTHERS};
use crate::fleet::chance::stream;
use crate::fleet::gates::Recording;
use crate::fleet::gates::generate::Generator;

/// Prompt tokens, spread evenly over their logarithm: most prompts of these data sets are short.
const PROMPT_TOKENS: (f64, f64) = (4.0, 1024.0);

/// A mix, with what was published of it.
pub(super) struct Traffic {
    /// Name in text.
    pub(super) name: &'static str,
    /// Name in the names of tables.
    pub(super) file: &'static str,
    /// Domains with their shares, which need not add up to anything.
    pub(super) shares: &'static [(&'static str, f64)],
    /// Published, by rate.
    pub(super) rates: &'static [Rate],
    /// Published of policies other than ELDR, means of the rates.
    pub(super) others: &'static [Change],
}

/// Shares: prompts of the test sets that each domain is made of, before long ones are dropped.
pub(super) const TASKS: Traffic = Traffic {
    name: "task",
    file: "task",
    shares: &[
        ("code", 2804.0),
        ("math", 2747.0),
        ("medical", 2545.0),
        ("legal", 3600.0),
    ],
    rates: &TASK,
    others: &TASK_OTHERS,
};

/// Shares in percent: of WildChat, English 53, Chinese 13 and Russian 12 as published; the other 22 are shared out here.
pub(super) const LANGUAGES: Traffic = Traffic {
    name: "language",
    file: "language",
    shares: &[
        ("en", 53.0),
        ("zh", 13.0),
        ("ru", 12.0),
        ("fr", 5.0),
        ("es", 4.0),
        ("pt", 3.0),
        ("de", 3.0),
        ("it", 2.0),
        ("ja", 2.0),
        ("tr", 1.0),
        ("ar", 1.0),
        ("pl", 1.0),
    ],
    rates: &LANGUAGE,
    others: &LANGUAGE_OTHERS,
};

impl Traffic {
    /// `requests` requests of the mix with `tokens` made-up decode tokens each, numbered from `first`: other numbers are other requests.
    pub(super) fn recording(&self, generator: &Generator, requests: usize, tokens: usize, first: u64) -> Recording {
        let total: f64 = self.shares.iter().map(|(_, share)| share).sum();
        let made = (0..requests).into_par_iter().map(|i| {
            let number = first + i as u64;
            let mut rng = stream(number, 0);
            let mut at = rng.r#gen::<f64>() * total;
            let domain = self.shares.iter().position(|(_, share)| {
                at -= share;
                at < 0.0
            });
            let domain = domain.unwrap_or(0);
            let (short, long) = PROMPT_TOKENS;
            let prompt = (short * (long / short).powf(rng.r#gen())).round();
            let mut request = generator.request(number, &[domain], prompt as u32, tokens);
            request.domains = vec![domain as u16];
            // Nothing here reads it.
            request.text = None;
            std::sync::Arc::new(request)
        });
        Recording {
            geometry: generator.geometry(),
            requests: made.collect(),
            domain_names: self.shares.iter().map(|(name, _)| (*name).to_owned()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::gates::generate::{Shape, preset};

    #[test]
    fn requests_are_of_the_mix() {
        let shape = Shape::TinyMoe;
        let generator = Generator::new(shape.geometry().unwrap(), preset(shape), 1);
        let made = LANGUAGES.recording(&generator, 2000, 2, 10);
        let share = |d| made.of_domain(d).len() as f64 / 2000.0;
        assert!((share(0) - 0.53).abs() < 0.04 && (share(1) - 0.13).abs() < 0.03);
        assert!(made.requests.iter().all(|r| (4..=1024).contains(&r.prompt_tokens)));
        let short = made.requests.iter().filter(|r| r.prompt_tokens <= 64).count() as f64 / 2000.0;
        assert!((short - 0.5).abs() < 0.05, "{short}");
        // A request is a function of its number.
        let again = LANGUAGES.recording(&generator, 1, 2, 15);
        assert_eq!(again.requests[0], made.requests[5]);
    }
}
