//! Constants, errors and primitive values of the container.

use std::io;

use super::{MAX_RECORD_BYTES, NGRAM_BUCKETS, Sample, Source};
use crate::counts::ActivationCounts;
use crate::table::Fingerprint;

pub(super) const MAGIC: &[u8; 8] = b"COTSAMPL";
pub(super) const VERSION: u16 = 1;
pub(super) const PREAMBLE: usize = 12;
pub(super) const KIND_FINGERPRINT: u8 = 1;
pub(super) const KIND_SAMPLE: u8 = 2;
pub(super) const KIND_END: u8 = 3;
pub(super) const MAX_FINGERPRINT_BYTES: usize = 4096;
const MAX_DIGEST_BYTES: usize = 128;

const HAS_PREFILL: u8 = 1;
const HAS_DECODE: u8 = 2;
const HAS_CLUSTER: u8 = 4;
const HAS_DIGEST: u8 = 8;
const HAS_NGRAMS: u8 = 16;

/// Why samples could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The stream below failed.
    #[error("samples: {0}")]
    Io(#[from] io::Error),
    /// Not a container of a known version, or damaged.
    #[error("samples: {0}")]
    Malformed(&'static str),
    /// A record longer than the limit.
    #[error("samples: a record of {0} bytes exceeds the limit of {MAX_RECORD_BYTES}")]
    TooLarge(u64),
    /// The stream ended before its end record: samples are missing.
    #[error("samples: the stream was cut after {0} samples")]
    Cut(u64),
    /// A sample that contradicts itself.
    #[error("samples: {0}")]
    Invalid(&'static str),
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn u8(&mut self) -> Result<u8, SampleError> {
        let (first, rest) = self
            .0
            .split_first()
            .ok_or(SampleError::Malformed("a record ends early"))?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn take(&mut self, n: usize) -> Result<&'a [u8], SampleError> {
        let (head, rest) = self
            .0
            .split_at_checked(n)
            .ok_or(SampleError::Malformed("a record ends early"))?;
        self.0 = rest;
        Ok(head)
    }

    pub(super) fn varint(&mut self) -> Result<u64, SampleError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(SampleError::Malformed("a number is longer than 64 bits"))
    }

    fn varint_u32(&mut self) -> Result<u32, SampleError> {
        u32::try_from(self.varint()?).map_err(|_| SampleError::Malformed("a count exceeds 32 bits"))
    }

    pub(super) fn end(&self) -> Result<(), SampleError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(SampleError::Malformed("bytes left over in a record"))
        }
    }
}

/// Appends the body of a sample record.
pub(super) fn encode_sample(sample: &Sample, out: &mut Vec<u8>) -> Result<(), SampleError> {
    check(sample)?;
    let flag = |present: bool, bit: u8| if present { bit } else { 0 };
    out.push(
        flag(sample.prefill_counts.is_some(), HAS_PREFILL)
            | flag(sample.decode_counts.is_some(), HAS_DECODE)
            | flag(sample.cluster.is_some(), HAS_CLUSTER)
            | flag(sample.table_digest.is_some(), HAS_DIGEST)
            | flag(!sample.ngrams.is_empty(), HAS_NGRAMS),
    );
    out.push(match sample.source {
        Source::Prefill => 0,
        Source::Text => 1,
    });
    for value in [sample.prompt_tokens, sample.generated_tokens, sample.time_unix_ms] {
        put_varint(out, value);
    }
    out.extend_from_slice(&sample.weight.to_le_bytes());
    for counts in [&sample.prefill_counts, &sample.decode_counts].into_iter().flatten() {
        put_varint(out, counts.tokens());
        counts.cells().iter().for_each(|c| put_varint(out, u64::from(*c)));
    }
    if let Some(cluster) = sample.cluster {
        put_varint(out, u64::from(cluster));
    }
    if let Some(digest) = &sample.table_digest {
        put_varint(out, digest.len() as u64);
        out.extend_from_slice(digest.as_bytes());
    }
    if !sample.ngrams.is_empty() {
        put_varint(out, sample.ngrams.len() as u64);
        let mut last = 0;
        for (bucket, count) in &sample.ngrams {
            put_varint(out, u64::from(bucket - last));
            put_varint(out, u64::from(*count));
            last = *bucket;
        }
    }
    Ok(())
}

/// More would leave nothing of the others in 32-bit sums.
const MAX_WEIGHT: f32 = 1e9;

fn check(sample: &Sample) -> Result<(), SampleError> {
    let geometry = sample.fingerprint.geometry;
    let foreign = [&sample.prefill_counts, &sample.decode_counts]
        .into_iter()
        .flatten()
        .any(|c| *c.geometry() != geometry);
    if foreign {
        return Err(SampleError::Invalid(
            "counts of another geometry than the fingerprint's",
        ));
    }
    let counted = [&sample.prefill_counts, &sample.decode_counts];
    if counted.into_iter().flatten().any(more_than_chosen) {
        return Err(SampleError::Invalid(
            "a layer counts more choices than its tokens have, tokens x top-k",
        ));
    }
    if !(0.0..=MAX_WEIGHT).contains(&sample.weight) {
        return Err(SampleError::Invalid("weight is not a number from 0 to 1e9"));
    }
    if sample.table_digest.as_ref().is_some_and(|d| d.len() > MAX_DIGEST_BYTES) {
        return Err(SampleError::Invalid("table digest longer than 128 bytes"));
    }
    let ascending = sample.ngrams.windows(2).all(|w| w[0].0 < w[1].0);
    if !ascending || sample.ngrams.last().is_some_and(|(bucket, _)| *bucket >= NGRAM_BUCKETS) {
        return Err(SampleError::Invalid("n-gram buckets are not ascending or out of range"));
    }
    Ok(())
}

/// Fewer are possible, of an engine that tells a part; more are no counts of these tokens.
fn more_than_chosen(counts: &ActivationCounts) -> bool {
    let most = counts.tokens().saturating_mul(counts.geometry().top_k as u64);
    counts.chosen().any(|chosen| chosen > most)
}

/// Reads the body of a sample record.
pub(super) fn decode_sample(body: &[u8], fingerprint: &Fingerprint) -> Result<Sample, SampleError> {
    let mut cursor = Cursor(body);
    let flags = cursor.u8()?;
    if flags & !(HAS_PREFILL | HAS_DECODE | HAS_CLUSTER | HAS_DIGEST | HAS_NGRAMS) != 0 {
        return Err(SampleError::Malformed("a sample has unknown flags"));
    }
    let mut sample = Sample::new(fingerprint.clone());
    sample.source = match cursor.u8()? {
        0 => Source::Prefill,
        1 => Source::Text,
        _ => return Err(SampleError::Malformed("a sample has an unknown source")),
    };
    sample.prompt_tokens = cursor.varint()?;
    sample.generated_tokens = cursor.varint()?;
    sample.time_unix_ms = cursor.varint()?;
    sample.weight = f32::from_le_bytes(cursor.take(4)?.try_into().unwrap_or_default());
    if flags & HAS_PREFILL != 0 {
        sample.prefill_counts = Some(read_counts(&mut cursor, fingerprint)?);
    }
    if flags & HAS_DECODE != 0 {
        sample.decode_counts = Some(read_counts(&mut cursor, fingerprint)?);
    }
    if flags & HAS_CLUSTER != 0 {
        sample.cluster = Some(cursor.varint_u32()?);
    }
    if flags & HAS_DIGEST != 0 {
        let length = cursor.varint()? as usize;
        if length > MAX_DIGEST_BYTES {
            return Err(SampleError::Malformed("table digest longer than 128 bytes"));
        }
        let text = std::str::from_utf8(cursor.take(length)?);
        sample.table_digest = Some(
            text.map_err(|_| SampleError::Malformed("table digest is not text"))?
                .to_owned(),
        );
    }
    if flags & HAS_NGRAMS != 0 {
        sample.ngrams = read_ngrams(&mut cursor)?;
    }
    cursor.end()?;
    check(&sample)?;
    Ok(sample)
}

fn read_counts(cursor: &mut Cursor<'_>, fingerprint: &Fingerprint) -> Result<ActivationCounts, SampleError> {
    let tokens = cursor.varint()?;
    // Each cell takes at least a byte: a short record is refused before room is made for its cells.
    if cursor.0.len() < fingerprint.geometry.cells() {
        return Err(SampleError::Malformed("a record ends early"));
    }
    let cells = (0..fingerprint.geometry.cells())
        .map(|_| cursor.varint_u32())
        .collect::<Result<Vec<_>, _>>()?;
    ActivationCounts::from_cells(&fingerprint.geometry, cells, tokens)
        .map_err(|_| SampleError::Malformed("counts do not fit the geometry"))
}

fn read_ngrams(cursor: &mut Cursor<'_>) -> Result<Vec<(u32, u32)>, SampleError> {
    let number = cursor.varint()?;
    if number == 0 || number > u64::from(NGRAM_BUCKETS) || number * 2 > cursor.0.len() as u64 {
        return Err(SampleError::Malformed("n-gram list is empty or longer than its record"));
    }
    let mut ngrams = Vec::with_capacity(number as usize);
    let mut last = 0u32;
    for _ in 0..number {
        let bucket = last
            .checked_add(cursor.varint_u32()?)
            .ok_or(SampleError::Malformed("n-gram bucket out of range"))?;
        ngrams.push((bucket, cursor.varint_u32()?));
        last = bucket;
    }
    Ok(ngrams)
}
