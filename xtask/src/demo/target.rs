//! The cluster that the demo runs on, with the images in it.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context as _, bail};

use super::Args;
use crate::{
    background::Background,
    cluster::{self, Kubectl},
    command::{command, quiet, succeeds},
    images::{self, Made},
    paths::Paths,
    progress::Report,
    tools,
};

/// A cluster that can be used.
pub(super) struct Target {
    /// kubectl against it.
    pub(super) kubectl: Kubectl,
    /// The helm program.
    pub(super) helm: PathBuf,
    /// Image references by short name.
    pub(super) images: BTreeMap<&'static str, String>,
    /// Whether this machine has routes to the cluster's Services.
    pub(super) local: bool,
    /// What a person types before kubectl commands work.
    pub(super) environment: Vec<String>,
}

/// Builds everything, at once where it can be, and brings the cluster up.
pub(super) fn prepare(args: &Args, paths: &Paths, report: &Report) -> anyhow::Result<Target> {
    let tools = Background::start(paths, "build the cluster's commands", &["tools"])?;
    let images = Background::start(paths, "build the images", &["images"])?;
    let Some(context) = &args.context else {
        tools.wait(report)?;
        let layout = cluster::up(paths, report)?;
        images.wait(report)?;
        let made = images::make_all(paths, report)?;
        images::load(paths, &made, report)?;
        return Ok(Target {
            kubectl: Kubectl::local(&layout),
            helm: layout.bin.join("helm"),
            images: references(&made),
            local: true,
            environment: vec![
                format!("export KUBECONFIG={}", layout.kubeconfig().display()),
                format!("export PATH={}:$PATH", paths.state.join("bin").display()),
            ],
        });
    };
    tools.wait(report)?;
    let bin = tools::ensure(paths, report)?;
    let kubectl = Kubectl::context(&bin, context);
    kubectl
        .output(["get", "--raw", "/readyz"])
        .with_context(|| format!("the cluster of context {context} does not answer"))?;
    images.wait(report)?;
    let mut made = images::make_all(paths, report)?;
    bring(&mut made, args, context, paths, report)?;
    Ok(Target {
        kubectl,
        helm: bin.join("helm"),
        images: references(&made),
        local: false,
        environment: vec![format!("kubectl config use-context {context}")],
    })
}

/// Gets the images to a cluster that is not ours.
fn bring(made: &mut [Made], args: &Args, context: &str, paths: &Paths, report: &Report) -> anyhow::Result<()> {
    if let Some(registry) = &args.registry {
        return images::push(paths, made, registry, report);
    }
    let Some(kind) = context
        .strip_prefix("kind-")
        .filter(|_| succeeds(&mut command("kind", ["version"])))
    else {
        bail!(
            "the cluster of context {context} must get the images: name a registry that it can pull from with --registry"
        );
    };
    report.step("load the images into kind", |step| {
        for image in made.iter() {
            step.note(image.name);
            quiet(command("kind", ["load", "image-archive", "--name", kind]).arg(&image.archive))?;
        }
        Ok(())
    })
}

fn references(made: &[Made]) -> BTreeMap<&'static str, String> {
    made.iter().map(|image| (image.name, image.reference.clone())).collect()
}

impl Target {
    /// An image's reference.
    pub(super) fn image(&self, name: &str) -> anyhow::Result<&str> {
        self.images
            .get(name)
            .map(String::as_str)
            .with_context(|| format!("there is no image {name}"))
    }
}
