//! Arrays for the peers, as `.npy` files.

use std::{fs::File, io::Write as _, path::Path};

use anyhow::Context as _;

/// Writes numbers in C order. `descr` is numpy's name of their little-endian bytes, such as `<f4`.
pub(crate) fn write_npy(
    path: &Path,
    descr: &str,
    shape: &[usize],
    data: impl Iterator<Item = u8>,
) -> anyhow::Result<()> {
    let dimensions: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let mut header = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({},), }}",
        dimensions.join(", ")
    );
    // The data start at a multiple of 64 bytes: 10 before the header, and a line end.
    let padding = 63 - (header.len() + 10) % 64;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(data);
    File::create(path)
        .and_then(|mut file| file.write_all(&bytes))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Writes f32 values.
pub(crate) fn write_f32(path: &Path, shape: &[usize], values: &[f32]) -> anyhow::Result<()> {
    write_npy(path, "<f4", shape, values.iter().flat_map(|v| v.to_le_bytes()))
}

/// Writes u32 values.
pub(crate) fn write_u32(path: &Path, shape: &[usize], values: impl Iterator<Item = u32>) -> anyhow::Result<()> {
    write_npy(path, "<u4", shape, values.flat_map(u32::to_le_bytes))
}

#[cfg(test)]
mod tests {
    use coterie_locality::npy::Array;

    use super::*;

    #[test]
    fn the_projects_own_reader_takes_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npy");
        write_u32(&path, &[2, 3], 0..6).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let array = Array::parse(&bytes).unwrap();
        assert_eq!(
            (array.shape.as_slice(), array.whole_numbers()),
            ([2, 3].as_slice(), Some((0..6).collect()))
        );
        assert_eq!((bytes.len() - 24) % 64, 0);
    }
}
