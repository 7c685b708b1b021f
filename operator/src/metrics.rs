//! Metrics of the operator, prefix `coterie_operator`.

use std::sync::atomic::AtomicU64;

use coterie_service::metrics::Metrics as Registry;
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
};

use crate::{error::Category, owner::Fleet};

/// The three controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Controller {
    /// Pools, routers, routing document.
    Fleet,
    /// Runs and tables.
    Calibration,
    /// Live traffic.
    Drift,
}

/// Labels of reconcile metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ControllerLabels {
    /// The controller.
    pub controller: Controller,
}

/// Labels of errors.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ErrorLabels {
    /// The controller.
    pub controller: Controller,
    /// What failed.
    pub category: Category,
}

/// Why a run was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum RunReasonLabel {
    /// The fleet had no table.
    Initial,
    /// A person asked.
    Manual,
    /// Traffic drifted.
    Drift,
}

/// Labels of runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RunLabels {
    /// Why.
    pub reason: RunReasonLabel,
}

/// A drift signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum SignalLabel {
    /// Mean similarity to the nearest centroid.
    CentroidFit,
    /// Busiest cluster's share x K.
    ClusterSkew,
}

/// Labels of drift signals: bounded by the MoEDeployments that exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SignalLabels {
    /// Namespace of the MoEDeployment.
    pub namespace: String,
    /// Its name.
    pub deployment: String,
    /// The signal.
    pub signal: SignalLabel,
}

/// Labels of a fleet: bounded by the MoEDeployments that exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct FleetLabels {
    /// Namespace of the MoEDeployment.
    pub namespace: String,
    /// Its name.
    pub deployment: String,
}

type Ratio = Gauge<f64, AtomicU64>;

/// All metrics of the operator.
#[derive(Clone, Debug)]
pub struct OperatorMetrics {
    /// Length of reconciles.
    pub reconcile_seconds: Family<ControllerLabels, Histogram>,
    /// Failed reconciles.
    pub reconcile_errors: Family<ErrorLabels, Counter>,
    /// Writes of child objects and status.
    pub writes: Family<ControllerLabels, Counter>,
    /// 1 while this process holds the Lease.
    pub is_leader: Gauge,
    /// Created runs.
    pub runs: Family<RunLabels, Counter>,
    /// Live value of a drift signal.
    pub drift_live: Family<SignalLabels, Ratio>,
    /// The active table's baseline of it.
    pub drift_baseline: Family<SignalLabels, Ratio>,
    /// The value that the live one must pass.
    pub drift_threshold: Family<SignalLabels, Ratio>,
    /// Signed requests as a share of all in the window.
    pub signature_coverage: Family<FleetLabels, Ratio>,
    /// 1 while the fleet is drifted.
    pub drifted: Family<FleetLabels, Gauge>,
}

impl OperatorMetrics {
    /// Makes and registers all metrics.
    pub fn register(metrics: &Registry) -> Self {
        let new = Self {
            reconcile_seconds: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 15))),
            reconcile_errors: Family::default(),
            writes: Family::default(),
            is_leader: Gauge::default(),
            runs: Family::default(),
            drift_live: Family::default(),
            drift_baseline: Family::default(),
            drift_threshold: Family::default(),
            signature_coverage: Family::default(),
            drifted: Family::default(),
        };
        metrics.register("coterie_operator", |r| {
            r.register(
                "reconcile_seconds",
                "Length of reconciles by controller",
                new.reconcile_seconds.clone(),
            );
            r.register(
                "reconcile_errors",
                "Failed reconciles by controller and category",
                new.reconcile_errors.clone(),
            );
            r.register(
                "writes",
                "Writes of child objects and status by controller",
                new.writes.clone(),
            );
            r.register(
                "is_leader",
                "1 while this process holds the Lease",
                new.is_leader.clone(),
            );
            r.register(
                "calibration_runs_created",
                "CalibrationRuns created by reason",
                new.runs.clone(),
            );
            r.register(
                "drift_signal_live_ratio",
                "Live value of a drift signal over the window",
                new.drift_live.clone(),
            );
            r.register(
                "drift_signal_baseline_ratio",
                "The active table's baseline of a drift signal",
                new.drift_baseline.clone(),
            );
            r.register(
                "drift_signal_threshold_ratio",
                "Value that a drift signal must pass to count as drift",
                new.drift_threshold.clone(),
            );
            r.register(
                "signature_coverage_ratio",
                "Requests with a signature as a share of all in the window",
                new.signature_coverage.clone(),
            );
            r.register(
                "drifted",
                "1 while the fleet's traffic counts as drifted",
                new.drifted.clone(),
            );
        });
        new
    }

    /// Sets the gauges of one signal.
    pub fn set_signal(&self, fleet: &Fleet, signal: SignalLabel, live: f64, baseline: f64, threshold: f64) {
        let labels = signal_labels(fleet, signal);
        self.drift_live.get_or_create(&labels).set(live);
        self.drift_baseline.get_or_create(&labels).set(baseline);
        self.drift_threshold.get_or_create(&labels).set(threshold);
    }

    /// Removes the gauges of a fleet that is gone.
    pub fn forget(&self, fleet: &Fleet) {
        self.forget_signals(fleet);
        self.signature_coverage.remove(&fleet_labels(fleet));
    }

    /// Removes the drift gauges of a fleet that is not judged.
    pub fn forget_signals(&self, fleet: &Fleet) {
        for signal in [SignalLabel::CentroidFit, SignalLabel::ClusterSkew] {
            let labels = signal_labels(fleet, signal);
            self.drift_live.remove(&labels);
            self.drift_baseline.remove(&labels);
            self.drift_threshold.remove(&labels);
        }
        self.drifted.remove(&fleet_labels(fleet));
    }
}

/// Labels of a fleet.
pub fn fleet_labels(fleet: &Fleet) -> FleetLabels {
    FleetLabels {
        namespace: fleet.namespace.clone(),
        deployment: fleet.name.clone(),
    }
}

fn signal_labels(fleet: &Fleet, signal: SignalLabel) -> SignalLabels {
    SignalLabels {
        namespace: fleet.namespace.clone(),
        deployment: fleet.name.clone(),
        signal,
    }
}
