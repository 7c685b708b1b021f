//! The stream of samples.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use coterie_locality::{
    Sample,
    sample::{SampleError, SampleWriter},
};
use futures::{Stream, stream};

type Samples = VecDeque<Arc<Sample>>;

/// A sample container, written a sample at a time as the reader takes it.
pub(super) fn container(
    samples: Vec<Arc<Sample>>,
    weight: f32,
) -> impl Stream<Item = Result<Bytes, SampleError>> + Send {
    let start = SampleWriter::new(Vec::new()).map(|writer| (writer, Samples::from(samples)));
    stream::unfold(Some(start), move |state| async move {
        Some(match state? {
            Ok((writer, samples)) => step(writer, samples, weight),
            Err(error) => (Err(error), None),
        })
    })
}

type State = Option<Result<(SampleWriter<Vec<u8>>, Samples), SampleError>>;

fn step(mut writer: SampleWriter<Vec<u8>>, mut samples: Samples, weight: f32) -> (Result<Bytes, SampleError>, State) {
    let Some(sample) = samples.pop_front() else {
        return (writer.finish().map(Bytes::from), None);
    };
    let weighted = Sample {
        weight,
        ..Sample::clone(&sample)
    };
    match writer.write(&weighted) {
        Ok(()) => {
            let written = std::mem::take(writer.get_mut());
            (Ok(written.into()), Some(Ok((writer, samples))))
        }
        // The stream ends without its end record: the reader sees that it was cut.
        Err(error) => (Err(error), None),
    }
}

#[cfg(test)]
mod tests {
    use coterie_locality::{ActivationCounts, Fingerprint, Geometry, sample::SampleReader};
    use futures::StreamExt;

    use super::*;

    #[tokio::test]
    async fn what_is_written_is_read_again_with_its_weight() {
        let geometry = Geometry::new(1, 4, 2).unwrap();
        let samples: Vec<Arc<Sample>> = (0..3)
            .map(|i| {
                let mut sample = Sample::new(Fingerprint::new("m", geometry));
                sample.time_unix_ms = i;
                sample.prefill_counts = Some(ActivationCounts::from_rows(&geometry, &[0u8, 1], 1).unwrap());
                Arc::new(sample)
            })
            .collect();
        let chunks: Vec<Bytes> = container(samples, 2.5).map(Result::unwrap).collect().await;
        let bytes = chunks.concat();
        let read: Vec<Sample> = SampleReader::new(&bytes[..]).unwrap().map(Result::unwrap).collect();
        assert_eq!(read.len(), 3);
        assert!(read.iter().all(|s| s.weight == 2.5));
        let empty: Vec<Bytes> = container(Vec::new(), 0.0).map(Result::unwrap).collect().await;
        assert_eq!(SampleReader::new(&empty.concat()[..]).unwrap().count(), 0);
    }
}
