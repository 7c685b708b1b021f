//! Creating the objects. A retried Job finds what the attempt before it created.

use coterie_crds::v1alpha1::CentroidTable as TableResource;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt, api::PostParams};

use super::objects::{Owner, Published, chunk_objects, table_object};
use crate::error::Error;

/// Names that are tried when an earlier attempt left a table of other content.
const NAMES: usize = 4;

/// Creates the CentroidTable and its chunks; returns the table's name.
///
/// # Errors
/// When the API server refuses an object or cannot be reached.
pub async fn publish(client: Client, owner: &Owner, published: &Published<'_>) -> Result<String, Error> {
    let tables: Api<TableResource> = Api::namespaced(client.clone(), &owner.namespace);
    let chunks: Api<ConfigMap> = Api::namespaced(client, &owner.namespace);
    let table = create_table(&tables, owner, published).await?;
    for chunk in chunk_objects(&table, owner, published.payload) {
        match chunks.create(&PostParams::default(), &chunk).await {
            Ok(_) => {}
            // The attempt before this one created it; the operator checks the digest of the whole.
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => return Err(refused("chunk", &chunk.name_any(), &error)),
        }
    }
    Ok(table.name_any())
}

async fn create_table(
    tables: &Api<TableResource>,
    owner: &Owner,
    published: &Published<'_>,
) -> Result<TableResource, Error> {
    for attempt in 1..=NAMES {
        let name = if attempt == 1 {
            owner.run.clone()
        } else {
            format!("{}-{attempt}", owner.run)
        };
        let wanted = table_object(&name, owner, published);
        match tables.create(&PostParams::default(), &wanted).await {
            Ok(created) => return Ok(created),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let existing = tables
                    .get(&name)
                    .await
                    .map_err(|error| refused("table", &name, &error))?;
                if existing.spec.digest == wanted.spec.digest && existing.spec.deployment == owner.deployment {
                    return Ok(existing);
                }
            }
            Err(error) => return Err(refused("table", &name, &error)),
        }
    }
    let message = format!(
        "tables {0} to {0}-{NAMES} exist with other content; delete them",
        owner.run
    );
    Err(Error::input("NameTaken", message))
}

fn refused(what: &str, name: &str, error: &kube::Error) -> Error {
    Error::infrastructure("PublishFailed", format!("create {what} {name}: {error}"))
}
