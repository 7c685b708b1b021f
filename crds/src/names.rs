//! Names, labels, ports and keys of a fleet's child objects. Everybody who finds one of them finds it through here.

/// Pattern of a DNS subdomain, which names of Kubernetes objects are.
pub const DNS_SUBDOMAIN_PATTERN: &str = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";

/// API group of the custom resources.
pub const GROUP: &str = "coterie.dev";
/// Label on every child: the MoEDeployment it belongs to.
pub const LABEL_DEPLOYMENT: &str = "coterie.dev/deployment";
/// Label on pods and Services: `prefill`, `decode`, `router` or `calibrator`.
pub const LABEL_ROLE: &str = "coterie.dev/role";
/// Label on workers: the fleet revision. Workers of one revision may hand off to each other.
pub const LABEL_REVISION: &str = "coterie.dev/revision";
/// Label on table chunks: the CentroidTable they are a part of.
pub const LABEL_TABLE: &str = "coterie.dev/table";
/// Label on Jobs and tables: the CalibrationRun that made them.
pub const LABEL_RUN: &str = "coterie.dev/run";
/// Standard label: name of the application.
pub const LABEL_APP: &str = "app.kubernetes.io/name";
/// Standard label: who manages the object.
pub const LABEL_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`LABEL_MANAGED_BY`] on every object that the operator writes.
pub const MANAGED_BY: &str = "coterie";

/// Role label of prefill workers.
pub const ROLE_PREFILL: &str = "prefill";
/// Role label of decode workers.
pub const ROLE_DECODE: &str = "decode";
/// Role label of routers.
pub const ROLE_ROUTER: &str = "router";
/// Role label of calibration Jobs.
pub const ROLE_CALIBRATOR: &str = "calibrator";

/// Name and number of an engine's HTTP port.
pub const ENGINE_PORT: u16 = 8000;
/// Port of an engine's KV side channel.
pub const KV_PORT: u16 = 5600;
/// Router: the clients' HTTP port.
pub const ROUTER_HTTP_PORT: u16 = 8080;
/// Every Coterie binary: /livez, /readyz, /metrics.
pub const METRICS_PORT: u16 = 9090;
/// Router: admin port, bearer key needed.
pub const ROUTER_ADMIN_PORT: u16 = 9091;

/// Key of the JSON in the routing document's ConfigMap.
pub const ROUTING_DOCUMENT_KEY: &str = "document.json";
/// Key of the bearer key in the admin Secret.
pub const ADMIN_TOKEN_KEY: &str = "token";
/// Key of the payload in a table chunk's `binaryData`.
pub const CHUNK_KEY: &str = "chunk";
/// ClusterRole of the chart, bound per fleet for routers: pods.
pub const CLUSTER_ROLE_ROUTER: &str = "coterie-router";
/// ClusterRole of the chart, bound per fleet for calibration Jobs: create tables and chunks.
pub const CLUSTER_ROLE_CALIBRATOR: &str = "coterie-calibrator";

/// StatefulSet and headless Service of the prefill pool.
pub fn prefill_pool(deployment: &str) -> String {
    format!("{deployment}-prefill")
}
/// StatefulSet and headless Service of the decode pool.
pub fn decode_pool(deployment: &str) -> String {
    format!("{deployment}-decode")
}
/// Router Deployment, its client Service, PodDisruptionBudget, ServiceAccount, Role and RoleBindings.
pub fn router(deployment: &str) -> String {
    format!("{deployment}-router")
}
/// Headless Service of the routers' admin ports.
pub fn router_admin(deployment: &str) -> String {
    format!("{deployment}-router-admin")
}
/// ConfigMap of the routing document.
pub fn routing_document(deployment: &str) -> String {
    format!("{deployment}-routing")
}
/// Secret with the admin port's bearer key.
pub fn admin_secret(deployment: &str) -> String {
    format!("{deployment}-admin")
}
/// ServiceAccount and RoleBinding of calibration Jobs.
pub fn calibrator(deployment: &str) -> String {
    format!("{deployment}-calibrator")
}
/// ConfigMap of chunk `index` of a table.
pub fn chunk(table: &str, index: usize) -> String {
    format!("{table}-{index}")
}
