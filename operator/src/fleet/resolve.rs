//! From a spec to values that planning can use without looking back: durations parsed, images chosen, revision computed.

use std::time::Duration;

use coterie_crds::{
    quantity,
    v1alpha1::{Images, MoEDeployment, MoEDeploymentSpec, Pool},
};

use super::revision;
use crate::{context::Settings, error::Error, owner::Fleet};

/// A fleet whose spec was understood.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Whose it is.
    pub fleet: Fleet,
    /// Generation of the spec.
    pub generation: Option<i64>,
    /// The spec.
    pub spec: MoEDeploymentSpec,
    /// Images: as recorded when the fleet was created, unless the spec names one.
    pub images: Images,
    /// Router image to run.
    pub router_image: String,
    /// Revision that the spec asks for.
    pub revision: String,
    /// Drain of prefill workers.
    pub prefill_drain: Duration,
    /// Drain of decode workers.
    pub decode_drain: Duration,
    /// Width of the locality band; `None`: the table's own.
    pub tau: Option<f32>,
    /// Load guard of the band.
    pub max_load_ratio: f32,
    /// Load guard of the prefix hash.
    pub load_factor: f32,
    /// Drift window in milliseconds.
    pub window_ms: u64,
}

/// Understands a spec. What fails here passed the API server's validation of an older CRD.
pub fn resolve(deployment: &MoEDeployment, settings: &Settings) -> Result<Resolved, Error> {
    let spec = deployment.spec.clone();
    let images = deployment
        .status
        .as_ref()
        .and_then(|s| s.images.clone())
        .unwrap_or_else(|| Images {
            router: settings.router_image.clone(),
            calibrator: settings.calibrator_image.clone(),
        });
    let routing = &spec.routing;
    let tau = match routing.locality_band.tau.as_str() {
        "Auto" => None,
        text => Some(decimal("spec.routing.localityBand.tau", text)?),
    };
    let drain = |field, pool: Option<&Pool>| pool.map_or(Ok(Duration::ZERO), |p| duration(field, &p.drain));
    Ok(Resolved {
        fleet: Fleet::of(deployment)?,
        generation: deployment.metadata.generation,
        router_image: routing.router.image.clone().unwrap_or_else(|| images.router.clone()),
        images,
        revision: revision::revision(&spec).map_err(|source| Error::Render {
            what: "revision",
            source,
        })?,
        prefill_drain: drain("spec.prefill.drain", spec.prefill.as_ref())?,
        decode_drain: drain("spec.decode.drain", Some(&spec.decode))?,
        tau,
        max_load_ratio: decimal(
            "spec.routing.localityBand.maxLoadRatio",
            &routing.locality_band.max_load_ratio,
        )?,
        load_factor: decimal("spec.routing.prefill.loadFactor", &routing.prefill.load_factor)?,
        window_ms: duration("spec.drift.window", &spec.drift.window)?.as_millis().max(4) as u64,
        spec,
    })
}

fn decimal(field: &str, text: &str) -> Result<f32, Error> {
    let value = quantity::decimal(text).map_err(|e| Error::InvalidSpec(format!("{field}: {e}")))?;
    Ok(value as f32)
}

fn duration(field: &str, text: &str) -> Result<Duration, Error> {
    quantity::duration(text).map_err(|e| Error::InvalidSpec(format!("{field}: {e}")))
}
