//! Experts chosen at every generated token of one request, packed in a byte each where the model has at most 256 experts.

use coterie_locality::{ActivationCounts, Geometry};

use super::ExpertSet;

/// Choices `[tokens, layers, top_k]` of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    geometry: Geometry,
    ids: Ids,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Ids {
    Narrow(Box<[u8]>),
    Wide(Box<[u16]>),
}

/// Choices that do not fit the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoicesError {
    /// The ids are not whole tokens.
    #[error("expert choices: {got} ids are not whole tokens of {per_token} (layers x top-k)")]
    Length {
        /// Ids given.
        got: usize,
        /// Ids of one token.
        per_token: usize,
    },
    /// An id outside the geometry.
    #[error("expert choices: expert {expert} at token {token}, the model has {experts} per layer")]
    Expert {
        /// The id.
        expert: usize,
        /// Token that has it.
        token: usize,
        /// Experts per layer.
        experts: usize,
    },
}

impl Choices {
    /// Checks and packs ids `[tokens, layers, top_k]`.
    pub fn new(geometry: Geometry, ids: &[u16]) -> Result<Self, ChoicesError> {
        check(geometry, ids.iter().map(|id| usize::from(*id)))?;
        let ids = if geometry.experts <= 256 {
            Ids::Narrow(ids.iter().map(|id| *id as u8).collect())
        } else {
            Ids::Wide(ids.into())
        };
        Ok(Self { geometry, ids })
    }

    /// Checks ids `[tokens, layers, top_k]` that are bytes already.
    pub fn from_bytes(geometry: Geometry, ids: &[u8]) -> Result<Self, ChoicesError> {
        check(geometry, ids.iter().map(|id| usize::from(*id)))?;
        let ids = if geometry.experts <= 256 {
            Ids::Narrow(ids.into())
        } else {
            Ids::Wide(ids.iter().map(|id| u16::from(*id)).collect())
        };
        Ok(Self { geometry, ids })
    }

    /// No tokens.
    pub fn none(geometry: Geometry) -> Self {
        Self {
            geometry,
            ids: Ids::Narrow(Box::default()),
        }
    }

    /// Shape of the model.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Generated tokens.
    pub fn tokens(&self) -> usize {
        let ids = match &self.ids {
            Ids::Narrow(ids) => ids.len(),
            Ids::Wide(ids) => ids.len(),
        };
        ids / self.geometry.ids_per_token()
    }

    /// Adds the experts of one token to a step's set. Tokens past the last one start over, so that outputs may be longer than what was
    /// recorded; a request without tokens adds nothing.
    pub fn add_to(&self, token: usize, set: &mut ExpertSet) {
        let (per_token, top_k) = (self.geometry.ids_per_token(), self.geometry.top_k);
        let at = token.checked_rem(self.tokens()).unwrap_or(0) * per_token;
        match &self.ids {
            Ids::Narrow(ids) => set.insert_token(ids.get(at..at + per_token).unwrap_or(&[]), top_k),
            Ids::Wide(ids) => set.insert_token(ids.get(at..at + per_token).unwrap_or(&[]), top_k),
        }
    }

    /// Calls `each` with (layer, expert) for every choice of one token; starts over past the last token.
    pub fn for_each(&self, token: usize, mut each: impl FnMut(usize, usize)) {
        let (per_token, top_k) = (self.geometry.ids_per_token(), self.geometry.top_k);
        let at = token.checked_rem(self.tokens()).unwrap_or(0) * per_token;
        match &self.ids {
            Ids::Narrow(ids) => {
                let row = ids.get(at..at + per_token).unwrap_or(&[]);
                row.iter()
                    .enumerate()
                    .for_each(|(i, id)| each(i / top_k, usize::from(*id)));
            }
            Ids::Wide(ids) => {
                let row = ids.get(at..at + per_token).unwrap_or(&[]);
                row.iter()
                    .enumerate()
                    .for_each(|(i, id)| each(i / top_k, usize::from(*id)));
            }
        }
    }

    /// How often each expert was chosen over the first `tokens` tokens (all, if there are fewer), [L, E].
    pub fn counts(&self, tokens: usize) -> ActivationCounts {
        let tokens = tokens.min(self.tokens());
        let ids = tokens * self.geometry.ids_per_token();
        let counts = match &self.ids {
            Ids::Narrow(all) => ActivationCounts::from_rows(&self.geometry, &all[..ids], tokens),
            Ids::Wide(all) => ActivationCounts::from_rows(&self.geometry, &all[..ids], tokens),
        };
        // Cannot fail: ids were checked when packed.
        counts.unwrap_or_else(|_| ActivationCounts::zeros(&self.geometry))
    }

    /// Bytes that the ids take.
    pub fn bytes(&self) -> usize {
        match &self.ids {
            Ids::Narrow(ids) => ids.len(),
            Ids::Wide(ids) => ids.len() * 2,
        }
    }
}

fn check(geometry: Geometry, ids: impl ExactSizeIterator<Item = usize>) -> Result<(), ChoicesError> {
    let (got, per_token) = (ids.len(), geometry.ids_per_token());
    if got % per_token != 0 {
        return Err(ChoicesError::Length { got, per_token });
    }
    let mut ids = ids.enumerate();
    match ids.find(|(_, id)| *id >= geometry.experts) {
        Some((i, expert)) => Err(ChoicesError::Expert {
            expert,
            token: i / per_token,
            experts: geometry.experts,
        }),
        None => Ok(()),
    }
}
