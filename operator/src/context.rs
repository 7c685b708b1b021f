//! What all reconciles share.

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Client,
    runtime::{events::Recorder, reflector::Store},
};

use crate::{
    drift::memory::DriftMemory,
    kube_io::children::SharedChildren,
    metrics::{Controller, ControllerLabels, OperatorMetrics},
    owner::Fleet,
    retry::Backoff,
    router_admin::RouterAdmin,
};

/// Settings from the command line.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Router image for fleets that name none.
    pub router_image: String,
    /// Calibrator image.
    pub calibrator_image: String,
}

/// Shared by all reconciles of one process.
pub struct Context {
    /// Client of the API server.
    pub client: Client,
    /// Settings.
    pub settings: Settings,
    /// Pods of all fleets, pruned.
    pub pods: Store<Pod>,
    /// Children of all fleets, by metadata.
    pub children: SharedChildren,
    /// Client of the routers.
    pub routers: RouterAdmin,
    /// Publishes Events.
    pub recorder: Recorder,
    /// Metrics.
    pub metrics: OperatorMetrics,
    /// What the drift monitor remembers between polls.
    pub drift: DriftMemory,
    /// Failures in a row.
    pub backoff: Backoff<(Controller, Fleet)>,
}

impl Context {
    /// Counts a write.
    pub fn count_write(&self, controller: Controller) {
        self.metrics
            .writes
            .get_or_create(&ControllerLabels { controller })
            .inc();
    }
}
