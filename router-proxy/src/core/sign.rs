//! From counts to similarities.

use coterie_locality::{
    ActivationCounts,
    score::{Nearest, nearest},
};

use crate::{dialect::MissingSignature, routing::Active};

/// A request's signature, as far as choosing needs it: its similarity to every centroid.
#[derive(Debug)]
pub(crate) struct Signed {
    pub(crate) scores: Vec<f32>,
    pub(crate) nearest: Nearest,
}

/// Scores counts by the active table; `Ok(None)` without a table.
pub(crate) fn sign(active: &Active, counts: &ActivationCounts) -> Result<Option<Signed>, MissingSignature> {
    let Some(table) = &active.table else {
        return Ok(None);
    };
    let mut similarities = vec![0.0; table.scorer.clusters()];
    let norm = table
        .with_scratch(|scratch| table.scorer.scores_of_counts(counts, scratch, &mut similarities))
        .map_err(|_| MissingSignature::Geometry)?;
    if norm == 0.0 {
        return Err(MissingSignature::Empty);
    }
    let nearest = nearest(&similarities).ok_or(MissingSignature::Empty)?;
    Ok(Some(Signed {
        scores: similarities,
        nearest,
    }))
}
