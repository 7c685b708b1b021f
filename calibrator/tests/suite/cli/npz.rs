//! Writing `.npz` files as NumPy does, small ones.

use std::io::{Cursor, Write};

use zip::{ZipWriter, write::SimpleFileOptions};

/// An array: type, shape, bytes.
pub(crate) struct Array {
    pub(crate) name: &'static str,
    pub(crate) descr: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<u8>,
}

impl Array {
    pub(crate) fn u16(name: &'static str, shape: &[usize], values: impl IntoIterator<Item = u16>) -> Self {
        Self {
            name,
            descr: "<u2".into(),
            shape: shape.to_vec(),
            data: values.into_iter().flat_map(u16::to_le_bytes).collect(),
        }
    }

    pub(crate) fn text(name: &'static str, shape: &[usize], values: &[&str]) -> Self {
        let width = values.iter().map(|value| value.chars().count()).max().unwrap_or(1);
        let padded = |value: &&str| {
            let mut points: Vec<u32> = value.chars().map(u32::from).collect();
            points.resize(width, 0);
            points
        };
        Self {
            name,
            descr: format!("<U{width}"),
            shape: shape.to_vec(),
            data: values.iter().flat_map(padded).flat_map(u32::to_le_bytes).collect(),
        }
    }
}

/// The bytes of an archive.
pub(crate) fn archive(arrays: &[Array]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for array in arrays {
        let sizes: Vec<String> = array.shape.iter().map(usize::to_string).collect();
        let comma = if sizes.len() == 1 { "," } else { "" };
        let shape = sizes.join(", ") + comma;
        let header = format!(
            "{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}\n",
            array.descr
        );
        zip.start_file(format!("{}.npy", array.name), SimpleFileOptions::default())
            .unwrap();
        zip.write_all(b"\x93NUMPY\x01\x00").unwrap();
        zip.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        zip.write_all(header.as_bytes()).unwrap();
        zip.write_all(&array.data).unwrap();
    }
    zip.finish().unwrap().into_inner()
}
