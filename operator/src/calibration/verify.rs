//! Whether a published table is whole, unharmed and made for this fleet.

use coterie_crds::{
    names,
    v1alpha1::{CentroidTable, Model, TablePhase},
};
use coterie_locality::{CentroidTable as Payload, table::join};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::Time};
use kube::{Api, Client};

use super::attempt::{PATIENCE, elapsed};
use crate::{error::Error, owner::Fleet};

/// Verdict on a table without a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    /// Complete and sound.
    Candidate,
    /// Not usable, and why.
    Rejected(String),
    /// Not all chunks are there yet.
    Incomplete(String),
}

/// Reads the chunks and checks them.
pub async fn verify(
    client: &Client,
    fleet: &Fleet,
    table: &CentroidTable,
    model: &Model,
    now: &Time,
) -> Result<Verified, Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &fleet.namespace);
    let mut chunks = Vec::with_capacity(table.spec.chunks.len());
    for name in &table.spec.chunks {
        let map = api.get_opt(name).await.map_err(Error::read("table chunk"))?;
        let Some(chunk) = map
            .and_then(|m| m.binary_data)
            .and_then(|mut d| d.remove(names::CHUNK_KEY))
        else {
            return Ok(incomplete(table, name, now));
        };
        chunks.push(chunk.0);
    }
    Ok(match check(table, &chunks, model) {
        Ok(()) => Verified::Candidate,
        Err(why) => Verified::Rejected(why),
    })
}

fn incomplete(table: &CentroidTable, chunk: &str, now: &Time) -> Verified {
    let age = table
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|t| elapsed(t, now))
        .unwrap_or_default();
    let why = format!("ConfigMap {chunk} is missing");
    if age > PATIENCE {
        Verified::Rejected(format!(
            "{why} {} minutes after the table was made",
            PATIENCE.as_secs() / 60
        ))
    } else {
        Verified::Incomplete(why)
    }
}

/// Checks joined chunks against what the CentroidTable and the fleet say.
pub fn check<C: AsRef<[u8]>>(table: &CentroidTable, chunks: &[C], model: &Model) -> Result<(), String> {
    let spec = &table.spec;
    let bytes = join(chunks, &spec.digest).map_err(|e| e.to_string())?;
    if i64::try_from(bytes.len()) != Ok(spec.payload_bytes) {
        return Err(format!(
            "the payload has {} bytes, {} announced",
            bytes.len(),
            spec.payload_bytes
        ));
    }
    let payload = Payload::decode(&bytes).map_err(|e| e.to_string())?;
    if i32::try_from(payload.clusters()) != Ok(spec.clusters) {
        return Err(format!(
            "the payload has {} clusters, {} announced",
            payload.clusters(),
            spec.clusters
        ));
    }
    let made_for = &payload.fingerprint;
    let geometry = [
        made_for.geometry.layers,
        made_for.geometry.experts,
        made_for.geometry.top_k,
    ];
    let announced = &spec.fingerprint.geometry;
    let announced = [announced.layers, announced.experts, announced.top_k];
    let same = geometry.iter().zip(announced).all(|(a, b)| i32::try_from(*a) == Ok(b));
    if made_for.model != spec.fingerprint.model || !same {
        return Err("payload and CentroidTable name different models".into());
    }
    if !fits(table, model) {
        return Err(format!(
            "the table is for model {} with another geometry or name than spec.model",
            made_for.model
        ));
    }
    Ok(())
}

/// Whether a table is for this model.
pub fn fits(table: &CentroidTable, model: &Model) -> bool {
    table.spec.fingerprint.model == model.name && table.spec.fingerprint.geometry == model.geometry
}

/// Whether a table may be used for this model, now or after it was verified.
pub fn usable(table: &CentroidTable, model: &Model) -> bool {
    let rejected = table.status.as_ref().and_then(|s| s.phase) == Some(TablePhase::Rejected);
    fits(table, model) && !rejected
}
