//! The admin port's bearer key: a random token, made once, read whenever routers are asked.

use std::collections::BTreeMap;

use coterie_crds::names;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use rand::{RngCore, rngs::OsRng};
use serde_json::json;

use super::{MANAGER, revision::hex};
use crate::{error::Error, owner::Fleet};

const TOKEN_BYTES: usize = 32;

/// The token, if the Secret is there.
pub async fn read(client: &Client, fleet: &Fleet) -> Result<Option<String>, Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), &fleet.namespace);
    let secret = api
        .get_opt(&names::admin_secret(&fleet.name))
        .await
        .map_err(Error::read("admin Secret"))?;
    Ok(secret.as_ref().and_then(token))
}

/// Makes the Secret if it is not there. A Secret without a token gets one; a token is never replaced.
pub async fn ensure(client: &Client, fleet: &Fleet) -> Result<String, Error> {
    let name = names::admin_secret(&fleet.name);
    let api: Api<Secret> = Api::namespaced(client.clone(), &fleet.namespace);
    if let Some(secret) = api.get_opt(&name).await.map_err(Error::read("admin Secret"))? {
        let ours = secret.owner_references().iter().any(|o| o.uid == fleet.uid);
        if !ours {
            return Err(Error::Foreign(format!(
                "Secret {name} exists and does not belong to this MoEDeployment: delete or rename it"
            )));
        }
        return match token(&secret) {
            Some(token) => Ok(token),
            None => refill(&api, &name).await,
        };
    }
    let new = fresh_token();
    let secret = Secret {
        metadata: fleet.child(name.clone(), fleet.labels()),
        data: Some(BTreeMap::from([(
            names::ADMIN_TOKEN_KEY.into(),
            ByteString(new.clone().into_bytes()),
        )])),
        type_: Some("Opaque".into()),
        ..Secret::default()
    };
    let params = PostParams {
        field_manager: Some(MANAGER.into()),
        ..PostParams::default()
    };
    api.create(&params, &secret)
        .await
        .map_err(Error::write(format!("Secret {name}")))?;
    Ok(new)
}

async fn refill(api: &Api<Secret>, name: &str) -> Result<String, Error> {
    let new = fresh_token();
    let patch = json!({"stringData": {names::ADMIN_TOKEN_KEY: new}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .map_err(Error::write(format!("Secret {name}")))?;
    Ok(new)
}

fn token(secret: &Secret) -> Option<String> {
    let bytes = &secret.data.as_ref()?.get(names::ADMIN_TOKEN_KEY)?.0;
    let text = std::str::from_utf8(bytes).ok()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn fresh_token() -> String {
    let mut bytes = [0_u8; TOKEN_BYTES];
    OsRng.fill_bytes(&mut bytes);
    hex(&bytes)
}
