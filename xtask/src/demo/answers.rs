//! A few prompts, answered by the real model through prefill, hand-off and decode.

use anyhow::Context as _;
use serde_json::json;

use super::{FLEET, http, reach::Router};
use crate::progress::Report;

/// Openings that are in no recording, so that the model itself must go on.
const PROMPTS: [(&str, &str); 6] = [
    ("English", "The next section describes the options that the command"),
    ("Python", "def read_config(path):\n    with open(path) as f:\n"),
    ("Spanish", "La biblioteca de la ciudad tiene una"),
    ("German", "Die Datei wird beim Start"),
    ("Japanese", "このプログラムは"),
    ("Russian", "Эта программа"),
];

/// Asks and prints.
pub(super) fn show(router: &Router, report: &Report) -> anyhow::Result<()> {
    for (language, prompt) in PROMPTS {
        let body = json!({"model": FLEET, "prompt": prompt, "max_tokens": 32, "temperature": 0.8, "seed": 7});
        let answer = http::post(&router.address, "/v1/completions", &body)?;
        let text = answer["choices"][0]["text"]
            .as_str()
            .context("the answer has no text")?;
        report.say(&format!("{language:<9}{} → {}", one_line(prompt), one_line(text)));
    }
    Ok(())
}

fn one_line(text: &str) -> String {
    text.replace('\n', "⏎")
}
