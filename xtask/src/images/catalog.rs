//! Which images there are, and what is in each beside the certificates.

/// An image: a target of `images/Containerfile`.
pub(crate) struct Image {
    /// Short name and target.
    pub(crate) name: &'static str,
    /// Binaries of the workspace.
    pub(crate) binaries: &'static [&'static str],
    /// Files and folders of the repository, with their place in the build context.
    pub(crate) files: &'static [(&'static str, &'static str)],
}

/// All images.
pub(crate) const IMAGES: [Image; 4] = [
    Image {
        name: "operator",
        binaries: &["coterie-operator"],
        files: &[],
    },
    Image {
        name: "router",
        binaries: &["coterie-router"],
        files: &[],
    },
    Image {
        name: "calibrator",
        binaries: &["coterie-calibrator"],
        files: &[],
    },
    Image {
        name: "engine-sim",
        binaries: &["coterie-engine-sim", "coterie-load"],
        files: &[
            ("engine-sim/models/tiny-moe", "models/tiny-moe"),
            ("engine-sim/recordings/tiny-moe.npz", "models/recording.npz"),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::IMAGES;

    /// The Containerfile serves `docker build` by itself, so it repeats the names: both must agree.
    #[test]
    fn the_containerfile_has_every_image_and_file() {
        let text = std::fs::read_to_string(format!("{}/../images/Containerfile", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let (builder, images) = text.split_once(crate::images::context::MARK).unwrap();
        for image in &IMAGES {
            assert!(
                images.contains(&format!("FROM scratch AS {}\n", image.name)),
                "{}",
                image.name
            );
            for binary in image.binaries {
                assert!(builder.contains(&format!("--bin {binary}")), "{binary} is not built");
                assert!(
                    images.contains(&format!("/out/bin/{binary} ")),
                    "{binary} is not copied"
                );
            }
            for (source, place) in image.files {
                assert!(
                    builder.contains(source) && images.contains(&format!("/out/{place} ")),
                    "{source}"
                );
            }
        }
    }
}
