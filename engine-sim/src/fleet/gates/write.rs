//! Recordings to files that [`Recording::load`] reads.

use std::io::{Cursor, Write};

use coterie_locality::Geometry;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::Recording;
use crate::recording::npy;

/// Most bytes of one array: as many as are read.
const MAX_ARRAY: usize = 512 << 20;

/// The recording as `.npz` with `prefill`, `decode`, `domain` and `prompt_tokens`. Every request must have the same number of generated tokens.
/// Text and n-grams are not in it. The same recording gives the same bytes. The error says what does not fit.
pub fn write_npz(recording: &Recording) -> Result<Vec<u8>, String> {
    let geometry = recording.geometry;
    let steps = recording.requests.first().map_or(0, |r| r.decode.tokens());
    let n = recording.len();
    check_npz_size(geometry, n, steps)?;
    let width = steps * geometry.ids_per_token();
    let id_bytes = bytes_of_id(geometry);
    let (mut prefill, mut decode, mut lengths) = (Vec::new(), Vec::with_capacity(n * width * id_bytes), Vec::new());
    for (index, request) in recording.requests.iter().enumerate() {
        if request.decode.tokens() != steps {
            return Err(format!(
                "request {index} has not {steps} generated tokens as others have"
            ));
        }
        let length =
            u16::try_from(request.prompt_tokens).map_err(|_| format!("request {index}: its prompt is too long"))?;
        lengths.extend(length.to_le_bytes());
        // No count exceeds the prompt's length.
        prefill.extend(request.prefill.cells().iter().flat_map(|c| (*c as u16).to_le_bytes()));
        for token in 0..steps {
            request.decode.for_each(token, |_, expert| {
                decode.extend_from_slice(&(expert as u16).to_le_bytes()[..id_bytes]);
            });
        }
    }
    let domains: Vec<String> = (0..n).map(|i| recording.domain(i)).collect();
    let id_type = if id_bytes == 1 { "|u1" } else { "<u2" };
    let shape = [n, steps, geometry.layers, geometry.top_k];
    let arrays = [
        (
            "prefill",
            npy::write("<u2", &[n, geometry.layers, geometry.experts], &prefill),
        ),
        ("decode", npy::write(id_type, &shape, &decode)),
        ("domain", npy::write_strings(&domains)),
        ("prompt_tokens", npy::write("<u2", &[n], &lengths)),
    ];
    archive(&arrays).map_err(|e| e.to_string())
}

/// Whether a file holds so many requests of so many generated tokens.
pub fn check_npz_size(geometry: Geometry, requests: usize, tokens: usize) -> Result<(), String> {
    let choices = tokens
        .saturating_mul(geometry.ids_per_token())
        .saturating_mul(bytes_of_id(geometry));
    if requests.saturating_mul(choices.max(geometry.cells() * 2)) <= MAX_ARRAY {
        return Ok(());
    }
    Err(format!(
        "{requests} requests of {tokens} generated tokens are more than a file holds ({} MiB an array): fewer requests or tokens",
        MAX_ARRAY >> 20
    ))
}

fn bytes_of_id(geometry: Geometry) -> usize {
    if geometry.experts <= 256 { 1 } else { 2 }
}

fn archive(arrays: &[(&str, Vec<u8>)]) -> zip::result::ZipResult<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(1))
        .last_modified_time(zip::DateTime::default());
    for (name, bytes) in arrays {
        zip.start_file(format!("{name}.npy"), options)?;
        zip.write_all(bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::gates::generate::{Generator, Plan, Shape, preset};

    #[test]
    fn what_is_written_is_read_back() {
        for shape in ["3x20x2", "2x300x4"] {
            let (geometry, near) = Shape::parse(shape).unwrap();
            let plan = Plan {
                requests: 12,
                domains: 3,
                first_domain: 0,
                blended: 0.5,
                prompt_tokens: (5, 60),
                output_tokens: 7,
                first_request: 0,
            };
            let made = Generator::new(geometry, preset(near), 4).recording(&plan);
            let bytes = write_npz(&made).unwrap();
            assert_eq!(bytes, write_npz(&made).unwrap());
            let read = Recording::parse(&bytes, None, 0).unwrap();
            assert_eq!((read.geometry, read.len()), (made.geometry, made.len()));
            for (i, (a, b)) in made.requests.iter().zip(&read.requests).enumerate() {
                assert_eq!((&a.prefill, &a.decode), (&b.prefill, &b.decode));
                assert_eq!((a.prompt_tokens, made.domain(i)), (b.prompt_tokens, read.domain(i)));
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let (geometry, near) = Shape::parse("2x8x2").unwrap();
        let generator = Generator::new(geometry, preset(near), 4);
        let mut made = Recording {
            geometry,
            domain_names: vec!["domain-0".into()],
            requests: [3, 4]
                .map(|tokens| std::sync::Arc::new(generator.request(0, &[0], 9, tokens)))
                .into(),
        };
        assert!(write_npz(&made).unwrap_err().contains("generated tokens"));
        made.requests = vec![std::sync::Arc::new(generator.request(0, &[0], 70_000, 3))];
        assert!(write_npz(&made).unwrap_err().contains("too long"));
    }
}
