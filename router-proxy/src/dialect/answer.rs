//! A prefill worker's answer: the few parts that routing needs, borrowed from its bytes. No tree is built of the rest, which may be
//! megabytes of expert ids.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The parts of a completion or chat completion that routing needs. Fields of unexpected type are left for the dialects to judge.
#[derive(Debug, Deserialize)]
pub(crate) struct PrefillAnswer<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    /// vLLM's hand-off object.
    #[serde(borrow, default)]
    pub(crate) kv_transfer_params: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    routed_experts: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: u64,
}

impl<'a> PrefillAnswer<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }

    /// Tokens of the prompt, as the engine counted them.
    pub(crate) fn prompt_tokens(&self) -> Option<u64> {
        let usage: Usage = serde_json::from_str(self.usage?.get()).ok()?;
        Some(usage.prompt_tokens)
    }

    /// vLLM's `choices[0].routed_experts`.
    pub(crate) fn routed_experts(&self) -> Option<&'a RawValue> {
        self.choices.first()?.routed_experts
    }
}
