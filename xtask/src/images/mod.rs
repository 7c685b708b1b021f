//! The project's container images.

mod binaries;
mod buildah;
mod catalog;
mod context;

pub(crate) use binaries::{build as build_binaries, clear_cargo_run, path as binary};
pub(crate) use buildah::Buildah;

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::{Context as _, bail};
use catalog::{IMAGES, Image};

use crate::{cluster, doctor, paths::Paths, progress::Report};

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Images to make; all by default.
    names: Vec<String>,
    /// Import them into the local cluster.
    #[arg(long)]
    load: bool,
    /// Name them for this registry, as HOST:PORT/PATH.
    #[arg(long, requires = "push")]
    registry: Option<String>,
    /// Push them to the registry.
    #[arg(long, requires = "registry")]
    push: bool,
    /// Install missing Debian packages without asking.
    #[arg(long)]
    yes: bool,
}

/// A made image.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    /// Short name: `operator`, `router` and so on.
    pub(crate) name: &'static str,
    /// Full reference. The tag follows the content, so that only a changed image changes a pod.
    pub(crate) reference: String,
    /// docker-archive file with the image.
    pub(crate) archive: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args, paths: &Paths, report: &Report) -> anyhow::Result<()> {
    doctor::require(doctor::Need::Images, args.yes, report)?;
    let chosen = choose(&args.names)?;
    let names: Vec<_> = chosen.iter().flat_map(|image| image.binaries).copied().collect();
    binaries::build(paths, &names)?;
    let mut made = make(paths, &chosen, report)?;
    if let Some(registry) = &args.registry {
        push(paths, &mut made, registry, report)?;
    }
    if args.load {
        load(paths, &made, report)?;
    }
    println!("{}", write_map(paths, &made)?);
    Ok(())
}

/// Makes all images from built binaries.
pub(crate) fn make_all(paths: &Paths, report: &Report) -> anyhow::Result<Vec<Made>> {
    let made = make(paths, &IMAGES.iter().collect::<Vec<_>>(), report)?;
    write_map(paths, &made)?;
    Ok(made)
}

fn choose(names: &[String]) -> anyhow::Result<Vec<&'static Image>> {
    if names.is_empty() {
        return Ok(IMAGES.iter().collect());
    }
    let find = |name: &String| {
        let known = IMAGES.iter().map(|image| image.name).collect::<Vec<_>>().join(", ");
        IMAGES
            .iter()
            .find(|image| image.name == name)
            .with_context(|| format!("no image {name}: one of {known}"))
    };
    names.iter().map(find).collect()
}

fn make(paths: &Paths, images: &[&'static Image], report: &Report) -> anyhow::Result<Vec<Made>> {
    report.step("make the images", |step| {
        let buildah = Buildah::new(paths);
        let mut made = Vec::new();
        for image in images {
            let tag = context::tag(paths, image)?;
            let reference = format!("localhost/coterie-{}:{tag}", image.name);
            let archive = buildah.archive(&format!("coterie-{}-{tag}", image.name));
            if !archive.exists() {
                step.milestone(format!("image {}", image.name));
                let work = buildah.work(image.name)?;
                context::fill(paths, image, &work.context())?;
                work.build(&context::containerfile(paths)?, Some(image.name), &reference, &archive)?;
                buildah.forget_older(&format!("coterie-{}-dev-", image.name), &archive)?;
            }
            made.push(Made {
                name: image.name,
                reference,
                archive,
            });
        }
        Ok(made)
    })
}

/// Imports images into the local cluster.
pub(crate) fn load(paths: &Paths, made: &[Made], report: &Report) -> anyhow::Result<()> {
    let layout = cluster::existing(paths);
    if !layout.containerd_socket().exists() {
        bail!("the cluster does not run: `cargo xtask cluster up` starts it");
    }
    report.step("load the images into the cluster", |step| {
        for image in made {
            step.note(image.name);
            cluster::load(&layout, &image.reference, &image.archive)?;
        }
        Ok(())
    })
}

/// Pushes images to a registry, and names them after it.
pub(crate) fn push(paths: &Paths, made: &mut [Made], registry: &str, report: &Report) -> anyhow::Result<()> {
    report.step(&format!("push the images to {registry}"), |step| {
        for image in made {
            step.note(image.name);
            let short = image.reference.trim_start_matches("localhost/").to_owned();
            image.reference = format!("{}/{short}", registry.trim_end_matches('/'));
            Buildah::new(paths).push(&image.archive, &image.reference)?;
        }
        Ok(())
    })
}

/// Writes name and reference of images to `.coterie/images.json`, beside those made earlier; returns the text.
pub(crate) fn write_map(paths: &Paths, made: &[Made]) -> anyhow::Result<String> {
    let file = paths.state.join("images.json");
    let before = fs::read_to_string(&file).unwrap_or_default();
    let mut map: BTreeMap<String, String> = serde_json::from_str(&before).unwrap_or_default();
    map.extend(
        made.iter()
            .map(|image| (image.name.to_owned(), image.reference.clone())),
    );
    let text = serde_json::to_string_pretty(&map)?;
    fs::write(&file, format!("{text}\n")).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(text)
}
