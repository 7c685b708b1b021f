//! From what is known of a request to similarities: its prefill counts, or what the table expects of its text.

use coterie_crds::routing::{PolicyKind, SignatureSource};
use coterie_locality::{
    ActivationCounts, Source,
    policy::Frequencies,
    predictor::{Evidence, PredictError, Scratch},
    score::{Nearest, nearest},
};

use super::request::ClientRequest;
use crate::{
    dialect::MissingSignature,
    routing::{Active, ActiveTable},
};

/// A request's signature, as far as choosing needs it: its similarity to every centroid of its source.
#[derive(Debug)]
pub(crate) struct Signed {
    pub(crate) scores: Vec<f32>,
    pub(crate) nearest: Nearest,
}

/// What a decode worker is chosen by.
#[derive(Debug)]
pub(crate) enum Signature {
    /// There are no counts for lack of a prefill, and text is no source.
    NotAsked,
    Made {
        source: Source,
        /// Absent where the table has no centroids of the source.
        signed: Option<Signed>,
        /// For policies that look at them.
        frequencies: Option<Frequencies>,
        /// Why the text had to do, where counts would have been taken first.
        instead: Option<Fallback>,
    },
    Missing {
        source: Source,
        reason: MissingSignature,
    },
}

/// Why a request is signed by its text although counts come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// No prefill worker answered for this request.
    NoPrefill,
    /// Its answer gave no counts.
    Counts(MissingSignature),
}

impl Fallback {
    pub(crate) const ALL: [Self; 5] = [
        Self::NoPrefill,
        Self::Counts(MissingSignature::Missing),
        Self::Counts(MissingSignature::Malformed),
        Self::Counts(MissingSignature::Geometry),
        Self::Counts(MissingSignature::Empty),
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::NoPrefill => "NoPrefill",
            Self::Counts(reason) => reason.as_str(),
        }
    }
}

impl Signature {
    /// The source taken; `None` where there is no signature.
    pub(crate) fn source(&self) -> Option<Source> {
        match self {
            Self::Made { source, .. } => Some(*source),
            Self::NotAsked | Self::Missing { .. } => None,
        }
    }

    pub(crate) fn signed(&self) -> Option<&Signed> {
        match self {
            Self::Made { signed, .. } => signed.as_ref(),
            Self::NotAsked | Self::Missing { .. } => None,
        }
    }

    pub(crate) fn take_frequencies(&mut self) -> Option<Frequencies> {
        match self {
            Self::Made { frequencies, .. } => frequencies.take(),
            Self::NotAsked | Self::Missing { .. } => None,
        }
    }
}

/// What came of a prefill, as far as it concerns signatures.
pub(super) type Counts = Result<ActivationCounts, MissingSignature>;

/// Signs a request as the document wants it. `counts` are of its prefill, if there was one.
pub(super) fn sign(active: &Active, request: &ClientRequest, counts: Option<&Counts>) -> Signature {
    let text = |instead| match by_text(active, request) {
        Ok(parts) => made(Source::Text, parts, instead),
        Err(reason) => missing(Source::Text, reason),
    };
    let wanted = active.document.signature.source;
    if wanted == SignatureSource::Text {
        return text(None);
    }
    let failed = match counts.map(|counts| by_counts(active, counts)) {
        Some(Ok(parts)) => return made(Source::Prefill, parts, None),
        Some(Err(reason)) => Some(reason),
        None => None,
    };
    if wanted == SignatureSource::Auto && active.knows_text() {
        let signature = text(Some(failed.map_or(Fallback::NoPrefill, Fallback::Counts)));
        if failed.is_none() || signature.source().is_some() {
            return signature;
        }
    }
    // What the engine left out says more than a prompt without text.
    failed.map_or(Signature::NotAsked, |reason| missing(Source::Prefill, reason))
}

type Parts = (Option<Signed>, Option<Frequencies>);

fn made(source: Source, (signed, frequencies): Parts, instead: Option<Fallback>) -> Signature {
    Signature::Made {
        source,
        signed,
        frequencies,
        instead,
    }
}

fn missing(source: Source, reason: MissingSignature) -> Signature {
    Signature::Missing { source, reason }
}

fn by_counts(active: &Active, counts: &Counts) -> Result<Parts, MissingSignature> {
    let counts = counts.as_ref().map_err(|reason| *reason)?;
    let signed = match &active.table {
        None => None,
        Some(table) => {
            let mut scores = vec![0.0; table.scorer.clusters()];
            let norm = table.with_scratch(|scratch| table.scorer.scores_of_counts(counts, scratch, &mut scores));
            Some(nonzero(norm.map_err(|_| MissingSignature::Geometry)?, scores)?)
        }
    };
    let looks = active.document.policy == PolicyKind::MarginalCost;
    let frequencies = looks.then(|| Frequencies::from_counts(counts).ok()).flatten();
    Ok((signed, frequencies))
}

fn by_text(active: &Active, request: &ClientRequest) -> Result<Parts, MissingSignature> {
    let known = active.table.as_deref().filter(|_| active.knows_text());
    let known = known.and_then(|table| Some((table, table.table.predictors.as_ref()?)));
    let (table, predictors) = known.ok_or(MissingSignature::NoTextSource)?;
    let text = request.text.as_ref().filter(|t| !t.is_empty());
    let text = text.ok_or(MissingSignature::NoText)?;
    let geometry = predictors.geometry();
    let mut values = vec![0.0; geometry.cells()];
    let other = |_: PredictError| MissingSignature::Geometry;
    let signed = if table.text.is_some() {
        predictors.text_into(text, &mut values).map_err(other)?;
        by_values(table, &values)?
    } else {
        None
    };
    let mut frequencies = None;
    if active.document.policy == PolicyKind::MarginalCost {
        // Unlike a signature, a cost must not trust a text that calibration hardly knows.
        let evidence = Evidence {
            text: Some(text),
            prefill: None,
        };
        let mut scratch = Scratch::new(geometry);
        let predicted = predictors.predict_into(evidence, &mut scratch, &mut values);
        predicted.map_err(other)?;
        frequencies = Frequencies::new(geometry, &values).ok();
    }
    Ok((signed, frequencies))
}

fn by_values(table: &ActiveTable, values: &[f32]) -> Result<Option<Signed>, MissingSignature> {
    let Some(scorer) = &table.text else {
        return Ok(None);
    };
    let mut scores = vec![0.0; scorer.clusters()];
    let norm = table.with_scratch(|scratch| scorer.scores_of_values(values, scratch, &mut scores));
    nonzero(norm.map_err(|_| MissingSignature::Geometry)?, scores).map(Some)
}

fn nonzero(norm: f32, scores: Vec<f32>) -> Result<Signed, MissingSignature> {
    let nearest = nearest(&scores).filter(|_| norm != 0.0);
    let nearest = nearest.ok_or(MissingSignature::Empty)?;
    Ok(Signed { scores, nearest })
}
