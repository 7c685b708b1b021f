//! A JSON object as a list of its fields, values left as the bytes they came in: what is not touched reaches the engine unchanged, down
//! to the spelling of its numbers.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Fields in the order they came; a name may occur twice, as JSON allows.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A name, borrowed unless it has escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Fields<'a> {
    pub(crate) fn parse(json: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// The value that counts: the last of its name, as engines take it.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(n, _)| n == name).map(|(_, v)| *v)
    }

    /// The value, if it is there, not null, and of this type.
    pub(crate) fn read<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_str::<Option<T>>(self.get(name)?.get()).ok()?
    }

    /// Whether the field is there and not null.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some_and(|v| v.get() != "null")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(n, v)| (n.as_ref(), *v))
    }
}

/// Writes a JSON object field by field.
#[derive(Debug)]
pub(crate) struct ObjectWriter(Vec<u8>);

impl ObjectWriter {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Adds a field; `json` is written as it is.
    pub(crate) fn field(&mut self, name: &str, json: &str) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        // Writing a string to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.0, name);
        self.0.push(b':');
        self.0.extend_from_slice(json.as_bytes());
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        self.0
    }
}
