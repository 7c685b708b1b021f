//! Command line.

use clap::{ArgAction, Parser};
use coterie_service::ServiceArgs;

/// Runs fleets declared as MoEDeployments.
#[derive(Parser, Clone, Debug)]
#[command(name = "coterie-operator", version)]
pub struct Args {
    /// Flags that every binary has.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Router image for fleets that name none. Recorded in a fleet's status when it is created.
    #[arg(long, env = "COTERIE_ROUTER_IMAGE")]
    pub router_image: String,
    /// Calibrator image. Recorded in a fleet's status when it is created.
    #[arg(long, env = "COTERIE_CALIBRATOR_IMAGE")]
    pub calibrator_image: String,
    /// Only look after this namespace; default: all.
    #[arg(long, env = "COTERIE_NAMESPACE")]
    pub namespace: Option<String>,
    /// Work only while holding a Lease, so that several replicas can stand by. `--leader-elect=false` for a single local process.
    #[arg(long, env = "COTERIE_LEADER_ELECT", action = ArgAction::Set, default_value_t = true, num_args = 0..=1, default_missing_value = "true")]
    pub leader_elect: bool,
    /// Name of the Lease.
    #[arg(long, env = "COTERIE_LEASE_NAME", default_value = "coterie-operator")]
    pub lease_name: String,
    /// Namespace of the Lease: the operator's own.
    #[arg(long, env = "POD_NAMESPACE", default_value = "default")]
    pub lease_namespace: String,
    /// Who holds the Lease: the pod's name.
    #[arg(long, env = "POD_NAME", default_value = "coterie-operator")]
    pub identity: String,
    /// Objects that each controller works on at the same time.
    #[arg(long, env = "COTERIE_CONCURRENCY", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,
}
