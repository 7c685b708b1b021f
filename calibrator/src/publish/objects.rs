//! The objects that carry a table.

use std::collections::BTreeMap;

use coterie_crds::{
    names,
    v1alpha1::{CentroidTable as TableResource, CentroidTableSpec, Fingerprint, Geometry, RunReport},
};
use coterie_locality::{CentroidTable, table};
use k8s_openapi::{
    ByteString,
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{Resource, ResourceExt};

use crate::report;

/// Largest chunk: an object of etcd may have 1.5 MiB, and a ConfigMap 1 MiB.
const CHUNK_BYTES: usize = 900 * 1024;

/// Who a table belongs to.
#[derive(Clone, Debug)]
pub struct Owner {
    /// Namespace of the fleet.
    pub namespace: String,
    /// Name of the MoEDeployment.
    pub deployment: String,
    /// Its uid.
    pub uid: String,
    /// Name of the CalibrationRun.
    pub run: String,
}

/// A table as it is published.
#[derive(Clone, Debug)]
pub struct Published<'a> {
    /// The table.
    pub table: &'a CentroidTable,
    /// Its encoded form.
    pub payload: &'a [u8],
    /// The fit's report.
    pub report: RunReport,
}

/// The CentroidTable `name`.
pub fn table_object(name: &str, owner: &Owner, published: &Published<'_>) -> TableResource {
    let table = published.table;
    let geometry = &table.fingerprint.geometry;
    let chunks = table::chunk(published.payload, CHUNK_BYTES).len();
    let spec = CentroidTableSpec {
        deployment: owner.deployment.clone(),
        run: owner.run.clone(),
        fingerprint: Fingerprint {
            model: table.fingerprint.model.clone(),
            // Geometry::new bounds each of them far below i32::MAX.
            geometry: Geometry {
                layers: geometry.layers as i32,
                experts: geometry.experts as i32,
                top_k: geometry.top_k as i32,
            },
        },
        transform: report::transform(table),
        clusters: table.clusters() as i32,
        digest: table::digest(published.payload),
        payload_bytes: published.payload.len() as i64,
        chunks: (0..chunks).map(|index| names::chunk(name, index)).collect(),
        report: published.report.clone(),
        baselines: report::baselines(table),
    };
    let mut object = TableResource::new(name, spec);
    object.metadata.namespace = Some(owner.namespace.clone());
    object.metadata.labels = Some(labels(owner));
    object.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "coterie.dev/v1alpha1".to_owned(),
        kind: "MoEDeployment".to_owned(),
        name: owner.deployment.clone(),
        uid: owner.uid.clone(),
        controller: Some(true),
        block_owner_deletion: None,
    }]);
    object
}

/// The chunks of a created CentroidTable, in order.
pub fn chunk_objects(created: &TableResource, owner: &Owner, payload: &[u8]) -> Vec<ConfigMap> {
    let mut labels = labels(owner);
    labels.insert(names::LABEL_TABLE.to_owned(), created.name_any());
    let parts = table::chunk(payload, CHUNK_BYTES);
    let chunks = created.spec.chunks.iter().zip(parts);
    chunks
        .map(|(name, bytes)| ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(owner.namespace.clone()),
                labels: Some(labels.clone()),
                owner_references: created.controller_owner_ref(&()).map(|reference| vec![reference]),
                ..ObjectMeta::default()
            },
            immutable: Some(true),
            binary_data: Some(BTreeMap::from([(
                names::CHUNK_KEY.to_owned(),
                ByteString(bytes.to_vec()),
            )])),
            ..ConfigMap::default()
        })
        .collect()
}

fn labels(owner: &Owner) -> BTreeMap<String, String> {
    BTreeMap::from([
        (names::LABEL_DEPLOYMENT.to_owned(), owner.deployment.clone()),
        (names::LABEL_RUN.to_owned(), owner.run.clone()),
        (names::LABEL_MANAGED_BY.to_owned(), names::MANAGED_BY.to_owned()),
    ])
}
