//! `import` and `export`: ELDR's centroid file.

use coterie_locality::eldr::{self, EldrError, ImportOptions, MAX_FILE_BYTES};
use serde::Serialize;

use super::fit::encode;
use crate::{
    args::{ExportArgs, ImportArgs},
    error::Error,
    input::{self, TableFile},
    output::{Content, Done},
    summary::{self, TableSummary},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Exported<'a> {
    kind: &'static str,
    table: &'a str,
    bytes: usize,
    file: String,
}

/// Makes a table of ELDR's file.
///
/// # Errors
/// When the file or a flag is refused; the message says what to do.
pub fn import(args: &ImportArgs) -> Result<Done, Error> {
    if !(0.0..=2.0).contains(&args.tau) {
        return Err(Error::usage(
            "BadFlags",
            format!("--tau is {}: give a cosine from 0 to 2", args.tau),
        ));
    }
    let refused = |what: String| Error::input("EldrRefused", format!("import {}: {what}", args.file.display()));
    let bytes = input::read_bytes(input::open(&args.file)?, MAX_FILE_BYTES as u64);
    let bytes = bytes.map_err(|error| refused(error.to_string()))?;
    let options = ImportOptions {
        model: args.model.clone(),
        top_k: args.top_k,
        tau: args.tau,
    };
    let table = eldr::import(&bytes, &options).map_err(|error| {
        let text = error.to_string();
        if text.contains("topK") {
            let message = format!("--top-k {} does not fit the file: {text}", args.top_k);
            return Error::usage("BadFlags", message);
        }
        refused(format!("{text}. {}", advice(&error)))
    })?;
    if table.fingerprint.model.is_empty() {
        let message = format!("{} does not name its model: give --model NAME", args.file.display());
        return Err(Error::usage("BadFlags", message));
    }
    let payload = encode(&table, args.precision.into())?;
    let file = TableFile::decode(&payload).map_err(|error| Error::infrastructure("EncodeFailed", error.to_string()))?;
    let told = TableSummary::of(&file, None);
    Ok(Done {
        text: if args.json { summary::json(&told) } else { told.text() },
        files: vec![(args.out.clone(), Content::Bytes(payload))],
    })
}

/// Writes a table as ELDR's file.
///
/// # Errors
/// When the table cannot be read or ELDR's format cannot hold it.
pub fn export(args: &ExportArgs) -> Result<Done, Error> {
    let file = input::table(&args.table)?;
    let mut written = eldr::export(&file.table).map_err(|error| {
        let message = format!("export {}: {error}. {}", args.table.display(), advice(&error));
        Error::input("NotExpressible", message)
    })?;
    let Some(out) = &args.out else {
        return Ok(String::from_utf8_lossy(&written).into_owned().into());
    };
    written.push(b'\n');
    let told = Exported {
        kind: "exported",
        table: &file.digest,
        bytes: written.len(),
        file: out.display().to_string(),
    };
    Ok(Done {
        text: if args.json {
            summary::json(&told)
        } else {
            format!(
                "{} clusters in {}; tau {} is not part of the file: give it to ELDR's proxy",
                file.table.clusters(),
                out.display(),
                file.table.tau
            )
        },
        files: vec![(out.clone(), Content::Bytes(written))],
    })
}

/// What to do about a refusal.
fn advice(error: &EldrError) -> &'static str {
    match error {
        EldrError::Malformed(text) if text.contains("kept layers") => {
            "List each kept layer once, ascending and below L, in layer_mask"
        }
        EldrError::Malformed(text) if text.contains("IDF") => {
            "Give sig_idf one finite weight of at least 0 for each expert of each kept layer, not all of them 0; or fit again"
        }
        EldrError::Malformed(text) if text.contains("geometry") => {
            "Check L and e: they are the model's MoE layers and experts per layer"
        }
        EldrError::Malformed(_) => "Give the whole JSON file that ELDR's fit writes",
        EldrError::Field { field, .. } => match *field {
            "sig_mean" => "Fit again without centring, or fit here: coterie-calibrator fit CALIBRATION.npz",
            "sig_per_layer_norm" => {
                "Fit again with one norm over all layers, or fit here: coterie-calibrator fit CALIBRATION.npz"
            }
            "variant" => {
                "Fit again as count, count_idf or gate_prob_all, or fit here: coterie-calibrator fit CALIBRATION.npz"
            }
            "sig_dtype" => "Set it to what the variant has: <i2 for count and count_idf, <f4 for gate_prob_all",
            "sig_idf" => "Leave it out, or set the variant to count_idf",
            "layer_mask" => "Name the kept layers, or for variant count leave it out",
            "k" => "Give the file as the fit wrote it, with k the number of its centroids",
            _ => {
                "Each centroid is a unit vector over the experts of the kept layers: give the file as the fit wrote it"
            }
        },
        EldrError::NotExpressible(_) => {
            "Fit with --transform count-idf, or with --transform count --layers all, and export that table"
        }
    }
}
