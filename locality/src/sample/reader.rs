//! Reads a container, sample by sample, holding one record in memory.

use std::io::{self, Read};

use super::codec::{
    Cursor, KIND_END, KIND_FINGERPRINT, KIND_SAMPLE, MAGIC, MAX_FINGERPRINT_BYTES, PREAMBLE, SampleError, VERSION,
    decode_sample,
};
use super::{MAX_RECORD_BYTES, Sample};
use crate::table::Fingerprint;

/// An iterator over the samples of a stream. After an error or the end record it yields nothing more.
#[derive(Debug)]
pub struct SampleReader<R> {
    inner: R,
    fingerprint: Option<Fingerprint>,
    read: u64,
    done: bool,
    record: Vec<u8>,
}

impl<R: Read> SampleReader<R> {
    /// Checks the start of the stream.
    pub fn new(mut inner: R) -> Result<Self, SampleError> {
        let mut preamble = [0u8; PREAMBLE];
        inner.read_exact(&mut preamble).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => SampleError::Malformed("shorter than its preamble"),
            _ => SampleError::Io(e),
        })?;
        let version = VERSION.to_le_bytes();
        if !preamble.starts_with(MAGIC) {
            return Err(SampleError::Malformed(
                "does not start with COTSAMPL: not a sample container",
            ));
        }
        if preamble.get(MAGIC.len()..) != Some(&[version[0], version[1], 0, 0]) {
            return Err(SampleError::Malformed("container version is not 1"));
        }
        Ok(Self {
            inner,
            fingerprint: None,
            read: 0,
            done: false,
            record: Vec::new(),
        })
    }

    fn next_sample(&mut self) -> Result<Option<Sample>, SampleError> {
        loop {
            let mut length = [0u8; 4];
            self.fill(&mut length)?;
            let length = u32::from_le_bytes(length) as usize;
            if length == 0 {
                return Err(SampleError::Malformed("an empty record"));
            }
            if length > MAX_RECORD_BYTES {
                return Err(SampleError::TooLarge(length as u64));
            }
            self.record.clear();
            // Grows with what arrives, not with what the length claims.
            let got = (&mut self.inner).take(length as u64).read_to_end(&mut self.record)?;
            if got < length {
                return Err(SampleError::Cut(self.read));
            }
            let Some((kind, body)) = self.record.split_first() else {
                return Err(SampleError::Malformed("an empty record"));
            };
            match *kind {
                KIND_FINGERPRINT => {
                    if body.len() > MAX_FINGERPRINT_BYTES {
                        return Err(SampleError::Malformed("fingerprint longer than 4 KiB"));
                    }
                    let parsed = serde_json::from_slice(body);
                    self.fingerprint = Some(parsed.map_err(|_| SampleError::Malformed("fingerprint is not valid"))?);
                }
                KIND_SAMPLE => {
                    let fingerprint = self.fingerprint.as_ref();
                    let fingerprint = fingerprint.ok_or(SampleError::Malformed("a sample before any fingerprint"))?;
                    let sample = decode_sample(body, fingerprint)?;
                    self.read += 1;
                    return Ok(Some(sample));
                }
                KIND_END => {
                    let mut cursor = Cursor(body);
                    let announced = cursor.varint()?;
                    cursor.end()?;
                    if announced != self.read {
                        return Err(SampleError::Malformed(
                            "the end record counts other samples than were read",
                        ));
                    }
                    return self.nothing_after();
                }
                _ => return Err(SampleError::Malformed("a record of unknown kind")),
            }
        }
    }

    /// Two containers one after the other would lose the second unseen.
    fn nothing_after(&mut self) -> Result<Option<Sample>, SampleError> {
        match (&mut self.inner).take(1).read_to_end(&mut self.record)? {
            0 => Ok(None),
            _ => Err(SampleError::Malformed(
                "bytes after the end record: containers cannot be joined by appending",
            )),
        }
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), SampleError> {
        self.inner.read_exact(buffer).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => SampleError::Cut(self.read),
            _ => SampleError::Io(e),
        })
    }
}

impl<R: Read> Iterator for SampleReader<R> {
    type Item = Result<Sample, SampleError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.next_sample().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}
