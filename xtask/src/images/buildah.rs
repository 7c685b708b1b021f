//! Building images without a daemon, with storage of our own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;

use crate::{
    command::{command, quiet},
    paths::Paths,
};

/// buildah with this checkout's storage.
pub(crate) struct Buildah {
    /// Storage and contexts.
    dir: PathBuf,
    /// Archives: what later runs and new clusters take.
    archives: PathBuf,
}

impl Buildah {
    /// Uses folders of this checkout.
    pub(crate) fn new(paths: &Paths) -> Self {
        Self {
            dir: paths.state.join("buildah"),
            archives: paths.state.join("images"),
        }
    }

    /// Where the archive of an image is or will be.
    pub(crate) fn archive(&self, name: &str) -> PathBuf {
        self.archives.join(format!("{name}.tar"))
    }

    /// An empty folder to build an image from.
    pub(crate) fn context(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.dir.join("context").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// Builds an image and writes it as an archive; storage and context are then given back.
    pub(crate) fn build(
        &self,
        context: &Path,
        containerfile: &str,
        target: Option<&str>,
        reference: &str,
        archive: &Path,
    ) -> anyhow::Result<()> {
        let file = context.with_extension("containerfile");
        fs::write(&file, containerfile)?;
        fs::create_dir_all(&self.archives)?;
        // Its network settings would else be made under /etc, though nothing here has a network.
        let networks = format!(
            "[network]\nnetwork_config_dir = \"{}\"\n",
            self.dir.join("networks").display()
        );
        fs::write(self.configuration(), networks)?;
        // The same content gives the same image: no time of day in it.
        let mut build = self.command(["build", "--quiet", "--timestamp", "0", "--tag", reference, "--file"]);
        build.arg(&file);
        if let Some(target) = target {
            build.args(["--target", target]);
        }
        quiet(build.arg(context))?;
        // An archive that is cut short must not be taken for whole.
        let partial = archive.with_extension("partial");
        let _ = fs::remove_file(&partial);
        quiet(&mut self.command([
            "push",
            "--quiet",
            reference,
            &format!("docker-archive:{}:{reference}", partial.display()),
        ]))?;
        fs::rename(&partial, archive)?;
        quiet(&mut self.command(["rmi", "--all", "--force"]))?;
        fs::remove_dir_all(context)?;
        Ok(())
    }

    /// Removes archives of the same image with another tag.
    pub(crate) fn forget_older(&self, prefix: &str, keep: &Path) -> anyhow::Result<()> {
        for entry in fs::read_dir(&self.archives)? {
            let path = entry?.path();
            let same = path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(prefix));
            if same && path != keep {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    fn configuration(&self) -> PathBuf {
        self.dir.join("containers.conf")
    }

    /// Pushes an archive to a registry.
    pub(crate) fn push(&self, archive: &Path, reference: &str) -> anyhow::Result<()> {
        let id = crate::command::output(&mut self.command([
            "pull",
            "--quiet",
            &format!("docker-archive:{}", archive.display()),
        ]))?;
        quiet(&mut self.command(["push", "--quiet", id.trim(), &format!("docker://{reference}")]))?;
        quiet(&mut self.command(["rmi", "--force", id.trim()]))
    }

    fn command<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut buildah = command("buildah", [""; 0]);
        // `vfs` and `chroot` need nothing of the kernel, so this also works inside a container.
        buildah
            .env("STORAGE_DRIVER", "vfs")
            .env("BUILDAH_ISOLATION", "chroot")
            .env("CONTAINERS_CONF", self.configuration());
        buildah
            .arg("--root")
            .arg(self.dir.join("root"))
            .arg("--runroot")
            .arg(self.dir.join("run"))
            .args(args);
        buildah
    }
}
