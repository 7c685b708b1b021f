//! Building images without a daemon, each in a folder of its own that is removed afterwards.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;

use crate::{
    command::{command, output, quiet},
    paths::Paths,
};

/// buildah for this checkout.
pub(crate) struct Buildah {
    /// Work folders.
    dir: PathBuf,
    /// Archives: what later runs and new clusters take.
    archives: PathBuf,
}

/// A folder in which one image is built. Nobody else builds under the same name until it is dropped.
pub(crate) struct Work {
    dir: PathBuf,
    _lock: File,
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

    /// An empty work folder.
    pub(crate) fn work(&self, name: &str) -> anyhow::Result<Work> {
        fs::create_dir_all(&self.dir).with_context(|| format!("cannot make {}", self.dir.display()))?;
        fs::create_dir_all(&self.archives)?;
        let lock = File::create(self.dir.join(format!("{name}.lock")))?;
        lock.lock()?;
        let dir = self.dir.join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("context"))?;
        // buildah's network settings would else be made under /etc, though nothing here has a network.
        let networks = format!(
            "[network]\nnetwork_config_dir = \"{}\"\n",
            dir.join("networks").display()
        );
        fs::write(dir.join("containers.conf"), networks)?;
        Ok(Work { dir, _lock: lock })
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

    /// Pushes an archive to a registry.
    pub(crate) fn push(&self, archive: &Path, reference: &str) -> anyhow::Result<()> {
        let work = self.work("push")?;
        let id = output(&mut work.buildah(["pull", "--quiet", &format!("docker-archive:{}", archive.display())]))?;
        quiet(&mut work.buildah(["push", "--quiet", id.trim(), &format!("docker://{reference}")]))
    }
}

impl Work {
    /// Where an image's files go.
    pub(crate) fn context(&self) -> PathBuf {
        self.dir.join("context")
    }

    /// Builds an image and writes it as an archive.
    pub(crate) fn build(
        &self,
        containerfile: &str,
        target: Option<&str>,
        reference: &str,
        archive: &Path,
    ) -> anyhow::Result<()> {
        let file = self.dir.join("Containerfile");
        fs::write(&file, containerfile)?;
        // The same content gives the same image: no time of day in it.
        let mut build = self.buildah(["build", "--quiet", "--timestamp", "0", "--tag", reference, "--file"]);
        build.arg(&file);
        if let Some(target) = target {
            build.args(["--target", target]);
        }
        quiet(build.arg(self.context()))?;
        // An archive that is cut short must not be taken for whole.
        let partial = self.dir.join("image.tar");
        let place = format!("docker-archive:{}:{reference}", partial.display());
        quiet(&mut self.buildah(["push", "--quiet", reference, &place]))?;
        fs::rename(&partial, archive).with_context(|| format!("cannot write {}", archive.display()))
    }

    fn buildah<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut buildah = command("buildah", [""; 0]);
        // `vfs` and `chroot` need nothing of the kernel, so this also works inside a container.
        buildah.env("STORAGE_DRIVER", "vfs").env("BUILDAH_ISOLATION", "chroot");
        buildah.env("CONTAINERS_CONF", self.dir.join("containers.conf"));
        buildah
            .arg("--root")
            .arg(self.dir.join("root"))
            .arg("--runroot")
            .arg(self.dir.join("run"))
            .args(args);
        buildah
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // A copy of everything in the image; what is left behind is removed by the next build.
        let _ = fs::remove_dir_all(&self.dir);
    }
}
