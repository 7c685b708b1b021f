//! Wrappings that a fuzzer cannot guess: checksums and compression around the bytes that matter.
//!
//! A target's input starts with a mode byte: 0 hands the rest to the parser as it is, anything else wraps the rest first.

use std::borrow::Cow;
use std::io::{Cursor, Write};

use flate2::{Compression, write::ZlibEncoder};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// Preamble of an encoded table, which the compressed body follows.
const TABLE_PREAMBLE: usize = 24;
/// Members of a calibration archive, in the order in which [`archive`] fills them.
pub const MEMBERS: [&str; 5] = [
    "prefill_counts",
    "decode_counts",
    "prompt_tokens",
    "decode_tokens",
    "metadata",
];

/// Mode byte and bytes for the parser, wrapped unless the mode is 0.
pub fn unpack(input: &[u8], wrap: fn(&[u8]) -> Vec<u8>) -> Option<(u8, Cow<'_, [u8]>)> {
    let (mode, rest) = input.split_first()?;
    let bytes = if *mode == 0 {
        Cow::Borrowed(rest)
    } else {
        Cow::Owned(wrap(rest))
    };
    Some((*mode, bytes))
}

/// A table from its preamble and its body uncompressed.
pub fn table(plain: &[u8]) -> Vec<u8> {
    let (preamble, body) = plain.split_at(TABLE_PREAMBLE.min(plain.len()));
    let mut deflate = ZlibEncoder::new(preamble.to_vec(), Compression::fast());
    deflate.write_all(body).expect("memory takes every byte");
    deflate.finish().expect("memory takes every byte")
}

/// The inverse of [`table`], for seeds.
pub fn plain_table(encoded: &[u8]) -> Vec<u8> {
    let (preamble, body) = encoded.split_at(TABLE_PREAMBLE);
    let mut plain = preamble.to_vec();
    std::io::copy(&mut flate2::read::ZlibDecoder::new(body), &mut plain).expect("a sound table");
    plain
}

/// A calibration archive from its members, each as a u16 length and that many bytes; a length of 0 leaves the member out.
pub fn archive(mut plain: &[u8]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (i, name) in MEMBERS.iter().enumerate() {
        let Some((length, rest)) = plain.split_first_chunk::<2>() else {
            break;
        };
        let (bytes, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
        plain = rest;
        if !bytes.is_empty() {
            let method = if i % 2 == 0 {
                CompressionMethod::Deflated
            } else {
                CompressionMethod::Stored
            };
            zip.start_file(
                format!("{name}.npy"),
                SimpleFileOptions::default().compression_method(method),
            )
            .expect("a new name");
            zip.write_all(bytes).expect("memory takes every byte");
        }
    }
    zip.finish().expect("memory takes every byte").into_inner()
}

/// An `.npy` file.
pub fn npy(dtype: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(data);
    out
}
