//! The one way a status is written: server-side apply of a controller's own fields, and only when they changed.

use std::fmt::Debug;

use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::error::Error;

/// Applies `status` as the fields of `manager`.
pub async fn apply<K, S>(api: &Api<K>, name: &str, manager: &str, status: &S) -> Result<(), Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    S: Serialize + Sync,
{
    let body = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": { "name": name },
        "status": status,
    });
    api.patch_status(name, &PatchParams::apply(manager).force(), &Patch::Apply(&body))
        .await
        .map_err(Error::write(format!("status of {} {name}", K::kind(&()))))?;
    Ok(())
}
