//! The metrics registry. Each part of a binary registers a struct of its own metrics; the caller gives the prefix.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::{encoding::text::encode, registry::Registry};

/// Content type of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The process's registry.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
}

impl Metrics {
    /// Registers metrics under `prefix`, e.g. `coterie_router`: `metrics.register("coterie_router", |r| Requests::register(r))`.
    pub fn register<T>(&self, prefix: &str, register: impl FnOnce(&mut Registry) -> T) -> T {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        register(registry.sub_registry_with_prefix(prefix))
    }

    /// All metrics in OpenMetrics text.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing into a String cannot fail.
        let _ = encode(&mut text, &registry);
        text
    }
}
