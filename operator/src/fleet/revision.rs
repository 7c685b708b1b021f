//! The fleet revision: one hash of everything that decides whether a prefill worker may hand off to a decode worker. Replica counts, drains
//! and update settings are not part of it: changing them replaces no worker.

use coterie_crds::v1alpha1::{Connector, EngineKind, EnvVar, Geometry, Gpus, MoEDeploymentSpec, ModelSource, Pool};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Hex digits of a revision.
const DIGITS: usize = 10;

#[derive(Serialize)]
struct Hashed<'a> {
    model: &'a str,
    source: &'a ModelSource,
    geometry: &'a Geometry,
    engine: EngineKind,
    image: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a [String]>,
    connector: Connector,
    args: &'a [String],
    env: Vec<&'a EnvVar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefill: Option<HashedPool<'a>>,
    decode: HashedPool<'a>,
}

#[derive(Serialize)]
struct HashedPool<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    gpus: Option<&'a Gpus>,
    args: &'a [String],
    env: Vec<&'a EnvVar>,
}

/// The revision that a spec asks for. A field that a later version adds must be left out of the hash while it is not set, or an upgrade
/// of the operator would replace all workers.
pub fn revision(spec: &MoEDeploymentSpec) -> Result<String, serde_json::Error> {
    let hashed = Hashed {
        model: &spec.model.name,
        source: &spec.model.source,
        geometry: &spec.model.geometry,
        engine: spec.engine.kind,
        image: &spec.engine.image,
        command: spec.engine.command.as_deref(),
        connector: spec.engine.transfer.connector,
        args: &spec.engine.args,
        env: sorted(&spec.engine.env),
        prefill: spec.prefill.as_ref().map(hashed_pool),
        decode: hashed_pool(&spec.decode),
    };
    Ok(short_hash(&serde_json::to_vec(&hashed)?, DIGITS))
}

/// The first hex digits of a SHA-256.
pub fn short_hash(bytes: &[u8], digits: usize) -> String {
    let mut text = hex(&Sha256::digest(bytes));
    text.truncate(digits);
    text
}

/// Lower-case hex digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect()
}

fn hashed_pool(pool: &Pool) -> HashedPool<'_> {
    HashedPool {
        gpus: pool.gpus.as_ref(),
        args: &pool.args,
        env: sorted(&pool.env),
    }
}

/// `env` is a map by name: its order says nothing.
fn sorted(env: &[EnvVar]) -> Vec<&EnvVar> {
    let mut env: Vec<&EnvVar> = env.iter().collect();
    env.sort_by(|a, b| a.name.cmp(&b.name));
    env
}
