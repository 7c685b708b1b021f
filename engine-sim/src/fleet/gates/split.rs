//! Parts of a recording: to fit on one and judge on another.

use std::sync::Arc;

use super::{Recording, RequestGates};

impl Recording {
    /// The first half of the requests and the rest, in their order. An odd one goes to the rest.
    pub fn halves(&self) -> (Self, Self) {
        self.split_at(self.len() / 2)
    }

    /// The first `first` requests and the rest.
    pub fn split_at(&self, first: usize) -> (Self, Self) {
        let (head, tail) = self.requests.split_at(first.min(self.len()));
        (self.with(head.to_vec()), self.with(tail.to_vec()))
    }

    /// Requests for which `keep` holds.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&RequestGates) -> bool) -> Self {
        self.with(self.requests.iter().filter(|r| keep(r)).cloned().collect())
    }

    /// Requests of one domain or none, and those that blend two.
    pub fn pure_and_blended(&self) -> (Self, Self) {
        (
            self.filtered(|r| !r.is_blended()),
            self.filtered(RequestGates::is_blended),
        )
    }

    /// Requests that are of this domain alone.
    #[must_use]
    pub fn of_domain(&self, domain: u16) -> Self {
        self.filtered(|r| r.domains == [domain])
    }

    /// Requests that have nothing of this domain: calibration for which it is unseen.
    #[must_use]
    pub fn without_domain(&self, domain: u16) -> Self {
        self.filtered(|r| !r.domains.contains(&domain))
    }

    /// Position of a domain's name.
    pub fn find_domain(&self, name: &str) -> Option<u16> {
        let at = self.domain_names.iter().position(|n| n == name)?;
        u16::try_from(at).ok()
    }

    fn with(&self, requests: Vec<Arc<RequestGates>>) -> Self {
        Self {
            geometry: self.geometry,
            domain_names: self.domain_names.clone(),
            requests,
        }
    }
}
