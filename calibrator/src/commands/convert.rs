//! `convert`: any samples to a container, all of them or a uniform choice.

use crate::{
    args::ConvertArgs,
    error::Error,
    input,
    output::{Content, Done},
    progress::Progress,
    summary::{self, Tally},
};

/// Reads samples and gives them back as a container, with their labels beside it.
///
/// # Errors
/// When the input cannot be read, or labels are asked for that it does not have.
pub fn convert(args: &ConvertArgs) -> Result<Done, Error> {
    let read = Progress::spinner("reading samples", args.json);
    let loaded = input::load(&args.input.samples, &args.input.reading, args.seed, &read)?;
    drop(read);
    let mut files = Vec::new();
    if let Some(path) = &args.domains_out {
        let Some(domains) = &loaded.domains else {
            let message = format!(
                "{} has no domain labels: give them with --domains FILE, or leave --domains-out out",
                args.input.samples.display()
            );
            return Err(Error::input("NoDomains", message));
        };
        let lines: String = domains.iter().flat_map(|domain| [domain.as_str(), "\n"]).collect();
        files.push((path.clone(), Content::Bytes(lines.into_bytes())));
    }
    let mut tally = Tally::default();
    for (at, sample) in loaded.samples.iter().enumerate() {
        let domain = loaded.domains.as_ref().and_then(|domains| domains.get(at));
        tally.add(sample, domain.map(String::as_str));
    }
    let told = tally.summary(loaded.form);
    files.insert(0, (args.out.clone(), Content::Samples(loaded.samples)));
    let text = if args.json {
        summary::json(&told)
    } else {
        format!(
            "{} of {} samples in {}",
            told.samples(),
            loaded.seen,
            args.out.display()
        )
    };
    Ok(Done { text, files })
}
