//! Bytes of a table.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | magic `COTTABLE` |
//! | 8 | 2 | format version, u16 LE: 1, or 2 with predictors or a text source |
//! | 10 | 2 | zero |
//! | 12 | 4 | header length, u32 LE, at most 256 KiB |
//! | 16 | 8 | body length, u64 LE, uncompressed: header + payload, at most 64 MiB |
//! | 24 | to the end | zlib stream of the body |
//!
//! The header is JSON (fingerprint, transform, sizes, precision, tau, baselines, report). The payload is IDF weights (f32 LE), then
//! centroids row by row (f32 or f16 LE); then, in version 2, the same two of source Text, if any, and the predictors, if any (see
//! `predictors`).

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use half::f16;
use serde::{Deserialize, Serialize};

use super::predictors::{self, Ranks};
use super::{Baselines, CentroidTable, Fingerprint, MAX_CLUSTERS, TableError, TextSource};
use crate::fit::FitReport;
use crate::geometry::Geometry;
use crate::transform::{Transform, TransformKind};

/// Newest version of the byte layout; version 1 is read too, and written for tables that need no more.
pub const FORMAT_VERSION: u16 = 2;
/// Longest accepted JSON header.
pub const MAX_HEADER_BYTES: u64 = 256 * 1024;
/// Largest accepted table, uncompressed, and largest accepted encoding.
pub const MAX_TABLE_BYTES: u64 = 64 * 1024 * 1024;
const MAGIC: &[u8; 8] = b"COTTABLE";
const PREAMBLE: usize = 24;

/// How centroids are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Precision {
    /// 32-bit floats: exact.
    F32,
    /// 16-bit floats: half the size, similarities off by less than 1e-3.
    F16,
}

impl Precision {
    fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Header {
    version: u32,
    fingerprint: Fingerprint,
    transform: TransformKind,
    kept_layers: Vec<u16>,
    clusters: usize,
    precision: Precision,
    tau: f32,
    baselines: Baselines,
    report: FitReport,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<TextHeader>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    predictors: Option<Ranks>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TextHeader {
    transform: TransformKind,
    kept_layers: Vec<u16>,
    clusters: usize,
    tau: f32,
    baselines: Baselines,
}

impl CentroidTable {
    /// Encodes the table, if it is sound; the same table gives the same bytes.
    pub fn encode(&self, precision: Precision) -> Result<Vec<u8>, TableError> {
        self.validate()?;
        self.write(precision)
    }

    /// Encodes without checks.
    pub(super) fn write(&self, precision: Precision) -> Result<Vec<u8>, TableError> {
        let failed = |error: &dyn std::fmt::Display| TableError::Invalid(format!("cannot encode: {error}"));
        let header = serde_json::to_vec(&Header {
            version: self.version,
            fingerprint: self.fingerprint.clone(),
            transform: self.transform.kind(),
            kept_layers: self.transform.kept_layers().to_vec(),
            clusters: self.clusters(),
            precision,
            tau: self.tau,
            baselines: self.baselines.clone(),
            report: self.report.clone(),
            text: self.text.as_ref().map(|text| TextHeader {
                transform: text.transform.kind(),
                kept_layers: text.transform.kept_layers().to_vec(),
                clusters: text.centroids.len() / text.transform.dim(),
                tau: text.tau,
                baselines: text.baselines.clone(),
            }),
            predictors: self.predictors.as_ref().map(Ranks::of),
        })
        .map_err(|e| failed(&e))?;
        within("header", header.len() as u64, MAX_HEADER_BYTES)?;
        let header_length = header.len() as u32;
        let mut raw = header;
        write_source(&self.transform, &self.centroids, precision, &mut raw);
        if let Some(text) = &self.text {
            write_source(&text.transform, &text.centroids, precision, &mut raw);
        }
        if let Some(predictors) = &self.predictors {
            predictors::write(predictors, &mut raw);
        }
        within("body", raw.len() as u64, MAX_TABLE_BYTES)?;
        let mut out = Vec::with_capacity(PREAMBLE + raw.len());
        out.extend_from_slice(MAGIC);
        let version: u16 = if self.version == 1 { 1 } else { FORMAT_VERSION };
        out.extend_from_slice(&version.to_le_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&header_length.to_le_bytes());
        out.extend_from_slice(&(raw.len() as u64).to_le_bytes());
        let mut deflate = ZlibEncoder::new(out, Compression::new(6));
        deflate.write_all(&raw).map_err(|e| failed(&e))?;
        deflate.finish().map_err(|e| failed(&e))
    }

    /// Decodes and validates a table. Memory stays within the announced size, which is itself limited.
    pub fn decode(bytes: &[u8]) -> Result<Self, TableError> {
        let (format, header_length, mut body) = inflate(bytes)?;
        let payload = body.split_off(header_length);
        let header: Header =
            serde_json::from_slice(&body).map_err(|e| TableError::Malformed(format!("header: {e}")))?;
        let geometry = header.fingerprint.geometry;
        if (format == 1) != (header.version == 1) {
            return Err(TableError::Malformed(format!(
                "a table of version {} in format version {format}",
                header.version
            )));
        }
        let shape = (header.transform, header.kept_layers, header.clusters);
        let ((transform, centroids), mut rest) = read_source(&payload, &geometry, shape, header.precision)?;
        let mut text = None;
        if let Some(part) = header.text {
            let shape = (part.transform, part.kept_layers, part.clusters);
            let ((transform, centroids), after) = read_source(rest, &geometry, shape, header.precision)?;
            rest = after;
            text = Some(TextSource {
                transform,
                centroids,
                tau: part.tau,
                baselines: part.baselines,
            });
        }
        let mut predictors = None;
        if let Some(ranks) = header.predictors {
            let (read, after) = predictors::read(rest, ranks, &geometry)?;
            rest = after;
            predictors = Some(read);
        }
        if !rest.is_empty() {
            return Err(TableError::Malformed(format!(
                "payload has {} bytes too many",
                rest.len()
            )));
        }
        let table = Self {
            version: header.version,
            fingerprint: header.fingerprint,
            transform,
            centroids,
            tau: header.tau,
            baselines: header.baselines,
            report: header.report,
            predictors,
            text,
        };
        table.validate()?;
        Ok(table)
    }
}

fn write_source(transform: &Transform, centroids: &[f32], precision: Precision, out: &mut Vec<u8>) {
    out.reserve(transform.idf().len() * 4 + centroids.len() * precision.size());
    out.extend(transform.idf().iter().flat_map(|w| w.to_le_bytes()));
    match precision {
        Precision::F32 => out.extend(centroids.iter().flat_map(|v| v.to_le_bytes())),
        Precision::F16 => out.extend(centroids.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes())),
    }
}

type SourcePart<'a> = ((Transform, Vec<f32>), &'a [u8]);

/// Reads transform and centroids of one source from the start of `payload`; `shape` is the transform's kind, kept layers and clusters.
fn read_source<'a>(
    payload: &'a [u8],
    geometry: &Geometry,
    (kind, kept_layers, clusters): (TransformKind, Vec<u16>, usize),
    precision: Precision,
) -> Result<SourcePart<'a>, TableError> {
    let dim = kept_layers.len().saturating_mul(geometry.experts);
    if clusters == 0 || clusters > MAX_CLUSTERS {
        return Err(TableError::Malformed(format!(
            "{clusters} clusters, must be 1 to {MAX_CLUSTERS}"
        )));
    }
    let idf_bytes = if kind == TransformKind::CountIdf {
        dim.saturating_mul(4)
    } else {
        0
    };
    let centroid_bytes = dim.saturating_mul(clusters).saturating_mul(precision.size());
    let parts = payload.split_at_checked(idf_bytes);
    let Some((idf, (centroids, rest))) =
        parts.and_then(|(idf, rest)| Some((idf, rest.split_at_checked(centroid_bytes)?)))
    else {
        return Err(TableError::Malformed(format!(
            "payload of {} bytes, {} expected",
            payload.len(),
            idf_bytes.saturating_add(centroid_bytes)
        )));
    };
    let transform =
        Transform::new(kind, geometry, kept_layers, read_f32(idf)).map_err(|e| TableError::Invalid(e.to_string()))?;
    let centroids = match precision {
        Precision::F32 => read_f32(centroids),
        Precision::F16 => centroids
            .as_chunks::<2>()
            .0
            .iter()
            .map(|b| f16::from_le_bytes(*b).to_f32())
            .collect(),
    };
    Ok(((transform, centroids), rest))
}

/// Checks the preamble and returns the format version, the header's length and the uncompressed body.
fn inflate(bytes: &[u8]) -> Result<(u16, usize, Vec<u8>), TableError> {
    within("encoding", bytes.len() as u64, MAX_TABLE_BYTES)?;
    let malformed = |text: &str| TableError::Malformed(text.into());
    let Some((preamble, compressed)) = bytes.split_first_chunk::<PREAMBLE>() else {
        return Err(malformed("shorter than its preamble"));
    };
    let [m0, m1, m2, m3, m4, m5, m6, m7, v0, v1, z0, z1, rest @ ..] = *preamble;
    let [h0, h1, h2, h3, b @ ..] = rest;
    if [m0, m1, m2, m3, m4, m5, m6, m7] != *MAGIC || [z0, z1] != [0, 0] {
        return Err(malformed("does not start with COTTABLE: not a centroid table"));
    }
    let version = u16::from_le_bytes([v0, v1]);
    if !(1..=FORMAT_VERSION).contains(&version) {
        return Err(TableError::Malformed(format!(
            "format version {version}; this build reads 1 to {FORMAT_VERSION}"
        )));
    }
    let header = u64::from(u32::from_le_bytes([h0, h1, h2, h3]));
    let announced = u64::from_le_bytes(b);
    within("header", header, MAX_HEADER_BYTES)?;
    within("body", announced, MAX_TABLE_BYTES)?;
    let mut body = Vec::new();
    let mut decoder = ZlibDecoder::new(compressed);
    let read = (&mut decoder).take(announced.saturating_add(1)).read_to_end(&mut body);
    read.map_err(|e| TableError::Malformed(format!("compressed body: {e}")))?;
    if body.len() as u64 != announced || header > announced {
        return Err(malformed("body length differs from the announced one"));
    }
    if decoder.total_in() != compressed.len() as u64 {
        return Err(malformed("bytes after the body"));
    }
    Ok((version, header as usize, body))
}

fn within(what: &'static str, got: u64, limit: u64) -> Result<(), TableError> {
    if got > limit {
        Err(TableError::TooLarge { what, got, limit })
    } else {
        Ok(())
    }
}

fn read_f32(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect()
}
