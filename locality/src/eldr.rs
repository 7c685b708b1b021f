//! Import and export of the ELDR artifact's centroid file (JSON), so that tables fitted by either side serve the other.
//!
//! The file has no model revision, band width or experts per token; the importer states them. Row i belongs to decoder i there, to
//! cluster i here.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fit::FitReport;
use crate::geometry::Geometry;
use crate::table::{Baselines, CentroidTable, Fingerprint, MAX_CLUSTERS, NORM_TOLERANCE};
use crate::transform::{Transform, TransformKind};

/// Largest accepted file.
pub const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;

/// What the file does not say.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportOptions {
    /// Model name; the file's own where it has one and this is absent.
    pub model: Option<String>,
    /// Experts chosen per token and layer.
    pub top_k: usize,
    /// Width of the band; 0.1 is ELDR's default.
    pub tau: f32,
}

/// Why a file was refused, or a table cannot be written as one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EldrError {
    /// Not JSON of the expected shape.
    #[error("ELDR centroid file: {0}")]
    Malformed(String),
    /// A field with a value that ELDR itself refuses.
    #[error("ELDR centroid file: {field} {problem}")]
    Field {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A table that ELDR's format cannot hold.
    #[error("ELDR centroid file: {0} has no counterpart in this format")]
    NotExpressible(&'static str),
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "L")]
    layers: usize,
    e: usize,
    #[serde(alias = "micro_centroids")]
    centroids: Vec<Vec<f32>>,
    k: Option<usize>,
    variant: Option<String>,
    sig_dtype: Option<String>,
    layer_mask: Option<Vec<u16>>,
    sig_idf: Option<Vec<f32>>,
    sig_mean: Option<Value>,
    sig_per_layer_norm: Option<Value>,
    model: Option<Value>,
    n_fit: Option<Value>,
    seed: Option<Value>,
    fit_peak_rho: Option<Value>,
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(rename = "L")]
    layers: usize,
    e: usize,
    k: usize,
    variant: &'static str,
    sig_dtype: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    layer_mask: Option<&'a [u16]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sig_idf: Option<&'a [f32]>,
    model: &'a str,
    algo: &'static str,
    n_fit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fit_peak_rho: Option<f64>,
    seed: u64,
    centroids: Vec<&'a [f32]>,
}

/// Reads a file, refusing all that ELDR refuses.
pub fn import(bytes: &[u8], options: &ImportOptions) -> Result<CentroidTable, EldrError> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(EldrError::Malformed(format!(
            "{} bytes, at most {MAX_FILE_BYTES} are read",
            bytes.len()
        )));
    }
    let file: File = serde_json::from_slice(bytes).map_err(|e| EldrError::Malformed(e.to_string()))?;
    let geometry =
        Geometry::new(file.layers, file.e, options.top_k).map_err(|e| EldrError::Malformed(e.to_string()))?;
    refuse_unsupported(&file)?;
    let transform = transform(&file, &geometry)?;
    let centroids = centroids(&file, transform.dim())?;
    let text = |v: &Option<Value>| v.as_ref().and_then(Value::as_str).map(str::to_owned);
    let number = |v: &Option<Value>| v.as_ref().and_then(Value::as_u64).unwrap_or(0);
    let model = options.model.clone().or_else(|| text(&file.model)).unwrap_or_default();
    let rho = file
        .fit_peak_rho
        .as_ref()
        .and_then(Value::as_f64)
        .filter(|r| (-1.0..=1.0).contains(r));
    let report = FitReport {
        samples: number(&file.n_fit),
        layers: transform.kept_layers().to_vec(),
        clusters: file.centroids.len() as u64,
        rho,
        seed: number(&file.seed),
        ..FitReport::default()
    };
    let table = CentroidTable {
        version: 1,
        fingerprint: Fingerprint::new(model, geometry),
        transform,
        centroids,
        tau: options.tau,
        // The file records how the fit went, not what held-out traffic looks like: drift has nothing to compare with until a re-fit.
        baselines: Baselines::default(),
        report: report.rounded(),
        predictors: None,
        text: None,
    };
    table.validate().map_err(|e| EldrError::Malformed(e.to_string()))?;
    Ok(table)
}

fn field(field: &'static str, problem: impl Into<String>) -> EldrError {
    EldrError::Field {
        field,
        problem: problem.into(),
    }
}

fn refuse_unsupported(file: &File) -> Result<(), EldrError> {
    if file.sig_mean.as_ref().is_some_and(|v| !v.is_null()) {
        return Err(field("sig_mean", "is not supported: signatures are not centred"));
    }
    if file
        .sig_per_layer_norm
        .as_ref()
        .is_some_and(|v| !matches!(v, Value::Null | Value::Bool(false)))
    {
        return Err(field(
            "sig_per_layer_norm",
            "is not supported: signatures have one norm over all layers",
        ));
    }
    if file.k.is_some_and(|k| k != file.centroids.len()) {
        let (k, rows) = (file.k.unwrap_or(0), file.centroids.len());
        return Err(field(
            "k",
            format!("does not agree: metadata k={k}, but there are {rows} centroids"),
        ));
    }
    Ok(())
}

fn transform(file: &File, geometry: &Geometry) -> Result<Transform, EldrError> {
    let kind = match file.variant.as_deref().unwrap_or("count") {
        "count" => TransformKind::Count,
        "count_idf" => TransformKind::CountIdf,
        "gate_prob_all" => TransformKind::GateProbability,
        other => {
            let known = "is not known (count, count_idf, gate_prob_all)";
            return Err(field(
                "variant",
                format!("'{}' {known}", other.chars().take(40).collect::<String>()),
            ));
        }
    };
    let expected = if kind == TransformKind::GateProbability {
        "<f4"
    } else {
        "<i2"
    };
    if file.sig_dtype.as_deref().unwrap_or("<i2") != expected {
        return Err(field("sig_dtype", format!("must be {expected} for this variant")));
    }
    if file.sig_idf.is_some() != (kind == TransformKind::CountIdf) {
        return Err(field("sig_idf", "belongs to variant count_idf, which must have it"));
    }
    let all = || (0..geometry.layers as u16).collect::<Vec<_>>();
    let layers = match (&file.layer_mask, kind) {
        (None, TransformKind::Count) => all(),
        (Some(mask), TransformKind::Count) if *mask != all() => {
            return Err(field("layer_mask", "must keep all layers for variant count"));
        }
        (Some(mask), _) => mask.clone(),
        (None, _) => return Err(field("layer_mask", "is missing; only variant count does without")),
    };
    Transform::new(kind, geometry, layers, file.sig_idf.clone().unwrap_or_default())
        .map_err(|e| EldrError::Malformed(e.to_string()))
}

fn centroids(file: &File, dim: usize) -> Result<Vec<f32>, EldrError> {
    let rows = &file.centroids;
    if !(1..=MAX_CLUSTERS).contains(&rows.len()) {
        return Err(field(
            "centroids",
            format!("has {} rows, must have 1 to {MAX_CLUSTERS}", rows.len()),
        ));
    }
    for (i, row) in rows.iter().enumerate() {
        if row.len() != dim {
            return Err(field(
                "centroids",
                format!("row {i} has {} values, {dim} expected", row.len()),
            ));
        }
        let norm = crate::score::dot(row, row).sqrt();
        if !norm.is_finite() || (norm - 1.0).abs() > NORM_TOLERANCE {
            return Err(field("centroids", format!("row {i} has norm {norm}, 1 expected")));
        }
    }
    Ok(rows.concat())
}

/// Writes a table as ELDR's file.
pub fn export(table: &CentroidTable) -> Result<Vec<u8>, EldrError> {
    let all_layers = table.transform.kept_layers().len() == table.fingerprint.geometry.layers;
    let (variant, sig_dtype) = match table.transform.kind() {
        TransformKind::Count if all_layers => ("count", "<i2"),
        TransformKind::Count => return Err(EldrError::NotExpressible("a count transform that leaves layers out")),
        TransformKind::CountIdf => ("count_idf", "<i2"),
        TransformKind::GateProbability => ("gate_prob_all", "<f4"),
        TransformKind::Sqrt => return Err(EldrError::NotExpressible("the square-root transform")),
        TransformKind::Binary => return Err(EldrError::NotExpressible("the binary transform")),
    };
    let written = Written {
        layers: table.fingerprint.geometry.layers,
        e: table.fingerprint.geometry.experts,
        k: table.clusters(),
        variant,
        sig_dtype,
        layer_mask: (variant != "count").then(|| table.transform.kept_layers()),
        sig_idf: (variant == "count_idf").then(|| table.transform.idf()),
        model: &table.fingerprint.model,
        algo: "kmbal",
        n_fit: table.report.samples,
        fit_peak_rho: table.report.rho,
        seed: table.report.seed,
        centroids: table.centroids.chunks_exact(table.transform.dim()).collect(),
    };
    serde_json::to_vec(&written).map_err(|e| EldrError::Malformed(e.to_string()))
}

#[cfg(test)]
#[path = "eldr_tests.rs"]
mod tests;
