//! Writes a container, sample by sample.

use std::io::Write;

use super::codec::{
    KIND_END, KIND_FINGERPRINT, KIND_SAMPLE, MAGIC, MAX_FINGERPRINT_BYTES, SampleError, VERSION, encode_sample,
    put_varint,
};
use super::{MAX_RECORD_BYTES, Sample};
use crate::table::Fingerprint;

/// Writes samples to any [`Write`]. Call [`Self::finish`], or readers will take the stream for cut.
#[derive(Debug)]
pub struct SampleWriter<W> {
    inner: W,
    fingerprint: Option<Fingerprint>,
    written: u64,
    record: Vec<u8>,
}

impl<W: Write> SampleWriter<W> {
    /// Starts a container.
    pub fn new(mut inner: W) -> Result<Self, SampleError> {
        inner.write_all(MAGIC)?;
        inner.write_all(&VERSION.to_le_bytes())?;
        inner.write_all(&[0, 0])?;
        Ok(Self {
            inner,
            fingerprint: None,
            written: 0,
            record: Vec::new(),
        })
    }

    /// Appends one sample; an invalid one is refused and leaves the stream as it was.
    pub fn write(&mut self, sample: &Sample) -> Result<(), SampleError> {
        self.record.clear();
        encode_sample(sample, &mut self.record)?;
        if self.record.len() >= MAX_RECORD_BYTES {
            return Err(SampleError::TooLarge(self.record.len() as u64));
        }
        if self.fingerprint.as_ref() != Some(&sample.fingerprint) {
            let json = serde_json::to_vec(&sample.fingerprint)
                .map_err(|_| SampleError::Invalid("fingerprint cannot be written as JSON"))?;
            if json.len() > MAX_FINGERPRINT_BYTES {
                return Err(SampleError::Invalid("fingerprint longer than 4 KiB"));
            }
            put_record(&mut self.inner, KIND_FINGERPRINT, &json)?;
            self.fingerprint = Some(sample.fingerprint.clone());
        }
        put_record(&mut self.inner, KIND_SAMPLE, &self.record)?;
        self.written += 1;
        Ok(())
    }

    /// Writes the end record and gives the stream back, flushed.
    pub fn finish(mut self) -> Result<W, SampleError> {
        self.record.clear();
        put_varint(&mut self.record, self.written);
        put_record(&mut self.inner, KIND_END, &self.record)?;
        self.inner.flush()?;
        Ok(self.inner)
    }

    /// The stream below, for a writer that sends it on piece by piece.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }
}

fn put_record(inner: &mut impl Write, kind: u8, body: &[u8]) -> Result<(), SampleError> {
    inner.write_all(&(body.len() as u32 + 1).to_le_bytes())?;
    inner.write_all(&[kind])?;
    inner.write_all(body)?;
    Ok(())
}
