//! The API server refuses what cannot work, and names the field.

use anyhow::{Context, Result, ensure};
use coterie_crds::v1alpha1::MoEDeployment;
use coterie_e2e::{
    fleet::Fleet,
    prompts::repository,
    spec,
    suite::{Suite, kubectl},
};
use kube::{Api, api::PostParams, core::DynamicObject, discovery::ApiResource};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_fleets_are_refused_with_a_message_that_names_the_field() -> Result<()> {
    let suite = Suite::start().await?;
    let fleet = Fleet::namespace(&suite, "e2e-invalid").await?;
    let resource = ApiResource::erase::<MoEDeployment>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(fleet.client.clone(), &fleet.namespace, &resource);
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let good = MoEDeployment::new(spec::NAME, spec::small("localhost/engine:1"));
    let good = serde_json::to_value(&good)?;
    api.create(&dry, &serde_json::from_value(good.clone())?)
        .await
        .context("the good fleet is taken")?;

    let cases: [(&str, Value, &str); 16] = [
        (
            "/spec/routing/localityBand/tau",
            json!("0,1"),
            "spec.routing.localityBand.tau",
        ),
        (
            "/spec/routing/localityBand/tau",
            json!("-0.1"),
            "spec.routing.localityBand.tau",
        ),
        (
            "/spec/routing/localityBand/maxLoadRatio",
            json!("0.5"),
            "spec.routing.localityBand.maxLoadRatio",
        ),
        (
            "/spec/routing/prefill/loadFactor",
            json!("0.9"),
            "spec.routing.prefill.loadFactor",
        ),
        ("/spec/routing/policy", json!("Fastest"), "spec.routing.policy"),
        (
            "/spec/routing/router/replicas",
            json!(0),
            "spec.routing.router.replicas",
        ),
        ("/spec/decode/replicas", json!(-1), "spec.decode.replicas"),
        ("/spec/decode/drain", json!("1 minute"), "spec.decode.drain"),
        ("/spec/model/geometry/topK", json!(65), "spec.model.geometry.topK"),
        ("/spec/model/geometry/experts", json!(2), "topK must not exceed experts"),
        ("/spec/model/source", json!({}), "spec.model.source"),
        ("/spec/engine/transfer/connector", json!("None"), "spec.prefill"),
        ("/spec/drift/window", json!("1s"), "spec.drift.window"),
        ("/spec/drift/cooldown", json!("10d"), "spec.drift.cooldown"),
        (
            "/spec/calibration/minSamples",
            json!(500),
            "minSamples must not exceed samples",
        ),
        ("/metadata/name", json!("a.b"), "metadata.name"),
    ];
    for (pointer, value, names) in cases {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer)
            .with_context(|| format!("{pointer} is not in the good fleet"))? = value.clone();
        match api.create(&dry, &serde_json::from_value(bad)?).await {
            Ok(_) => anyhow::bail!("{pointer} = {value} was taken"),
            Err(error) => ensure!(
                error.to_string().contains(names),
                "{pointer} = {value}: {names:?} is not in {error}"
            ),
        }
    }
    let mut missing = good.clone();
    missing["spec"]["model"]
        .as_object_mut()
        .context("a model")?
        .remove("geometry");
    let error = api
        .create(&dry, &serde_json::from_value(missing)?)
        .await
        .err()
        .context("geometry is needed")?;
    ensure!(error.to_string().contains("spec.model.geometry"), "{error}");
    fleet.delete_namespace().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn examples_are_taken() -> Result<()> {
    Suite::start().await?;
    for entry in std::fs::read_dir(repository().join("examples"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            kubectl(&["apply", "--dry-run=server", "-f", &path.to_string_lossy()]).await?;
        }
    }
    Ok(())
}
