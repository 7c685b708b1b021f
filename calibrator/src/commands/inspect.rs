//! `inspect`: what a table or a file of samples holds.

use std::io::{Cursor, Read};

use coterie_locality::table::MAX_TABLE_BYTES;

use crate::{
    args::InspectArgs,
    error::Error,
    input::{self, TableFile, domains},
    output::Done,
    progress::Progress,
    summary::{self, TableSummary, Tally},
};

/// How a table starts.
const TABLE_MAGIC: &[u8] = b"COTTABLE";

/// Describes a table or samples. Samples are streamed.
///
/// # Errors
/// When the file is neither, or is damaged.
pub fn inspect(args: &InspectArgs) -> Result<Done, Error> {
    let refused = |what: String| Error::input("Unreadable", format!("read {}: {what}", args.file.display()));
    let mut input = input::open(&args.file)?;
    let mut start = Vec::new();
    (&mut input)
        .take(TABLE_MAGIC.len() as u64)
        .read_to_end(&mut start)
        .map_err(|error| refused(error.to_string()))?;
    if start == TABLE_MAGIC {
        let payload = input::read_bytes(Cursor::new(start).chain(input), MAX_TABLE_BYTES);
        let payload = payload.map_err(|error| refused(error.to_string()))?;
        let told = TableSummary::of(
            &TableFile::decode(&payload).map_err(|error| refused(error.to_string()))?,
            None,
        );
        return Ok(if args.json { summary::json(&told) } else { told.text() }.into());
    }
    let labels = args.reading.domains.as_deref().map(domains::read).transpose()?;
    let mut labels = labels.into_iter().flatten();
    let progress = Progress::spinner("reading samples", args.json);
    let mut tally = Tally::default();
    let form = input::each(
        Box::new(Cursor::new(start).chain(input)),
        &args.file,
        &args.reading,
        |sample, own| {
            tally.add(&sample, labels.next().or(own).as_deref());
            progress.tick();
        },
    )?;
    drop(progress);
    let told = tally.summary(form);
    Ok(if args.json { summary::json(&told) } else { told.text() }.into())
}
