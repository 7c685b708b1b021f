//! KV hand-off between a prefill and a decode worker.

use std::time::Duration;

use serde_json::value::RawValue;

use super::PrefillAnswer;

/// How one P/D transfer protocol speaks through requests and answers.
pub(crate) trait HandOff: Send + Sync {
    /// Field of the request body that belongs to the protocol, on both legs.
    fn field(&self) -> &'static str;

    /// Value of [`Self::field`] on the prefill leg, as JSON.
    fn prefill_value(&self) -> &'static str;

    /// The hand-off object of an answer, which goes to the decode worker untouched; `None` when the answer carries none.
    fn extract(&self, answer: &PrefillAnswer<'_>) -> Option<Box<RawValue>>;

    /// How long after the prefill an object that no worker has seen may still be used. Below the engine's lease, with margin.
    fn usable_for(&self) -> Duration;
}

/// vLLM's `NixlConnector`: the decode worker pulls the blocks, so it may be chosen after the prefill.
#[derive(Debug)]
pub(crate) struct Nixl;

impl HandOff for Nixl {
    fn field(&self) -> &'static str {
        "kv_transfer_params"
    }

    fn prefill_value(&self) -> &'static str {
        r#"{"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,"remote_block_ids":null,"remote_host":null,"remote_port":null}"#
    }

    fn extract(&self, answer: &PrefillAnswer<'_>) -> Option<Box<RawValue>> {
        let object = answer.kv_transfer_params?;
        // An engine without the connector answers null or {}: to send that on would let decode recompute unseen.
        let inner = object.get().strip_prefix('{')?.strip_suffix('}')?;
        (!inner.trim().is_empty()).then(|| object.to_owned())
    }

    fn usable_for(&self) -> Duration {
        // The engine's default lease is 30 s; decode needs time to fetch.
        Duration::from_secs(10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extract(answer: &str) -> Option<String> {
        let answer = PrefillAnswer::parse(answer.as_bytes()).unwrap();
        Nixl.extract(&answer).map(|v| v.get().to_owned())
    }

    #[test]
    fn the_object_is_taken_verbatim_with_unknown_fields() {
        let object =
            r#"{"do_remote_prefill":true, "remote_block_ids":[[1,2]],"future":1e400,"big":123456789012345678901}"#;
        assert_eq!(
            extract(&format!(r#"{{"kv_transfer_params":{object},"choices":[]}}"#)).as_deref(),
            Some(object)
        );
    }

    #[test]
    fn null_empty_and_missing_objects_are_none() {
        for answer in [
            r#"{"kv_transfer_params":null}"#,
            r#"{"kv_transfer_params":{ }}"#,
            r#"{"kv_transfer_params":"x"}"#,
            "{}",
        ] {
            assert_eq!(extract(answer), None, "{answer}");
        }
    }

    #[test]
    fn the_prefill_value_is_json() {
        assert!(serde_json::from_str::<serde_json::Value>(Nixl.prefill_value()).unwrap()["do_remote_decode"] == true);
    }
}
