//! Why a reconcile failed.

/// Failure of a reconcile. Its [`category`](Error::category) is the metric label.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object in hand has no namespace or uid: it did not come from an API server.
    #[error("object has no {0}")]
    Incomplete(&'static str),
    /// The API server could not be read.
    #[error("read {what}")]
    Read {
        /// What was to be read.
        what: &'static str,
        /// Why it failed.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API server refused a write.
    #[error("write {what}")]
    Write {
        /// What was to be written.
        what: String,
        /// Why it failed.
        #[source]
        source: Box<kube::Error>,
    },
    /// An object that the plan needs belongs to somebody else.
    #[error("{0}")]
    Foreign(String),
    /// The spec cannot be carried out; only a change of it helps.
    #[error("{0}")]
    InvalidSpec(String),
    /// An object cannot be written as JSON: a fault of the operator.
    #[error("render {what}")]
    Render {
        /// What was to be rendered.
        what: &'static str,
        /// Why it failed.
        #[source]
        source: serde_json::Error,
    },
}

impl Error {
    /// A read that failed.
    pub fn read(what: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Read {
            what,
            source: Box::new(source),
        }
    }

    /// A write that failed.
    pub fn write(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Write {
            what: what.into(),
            source: Box::new(source),
        }
    }

    /// Closed set of words for metrics.
    pub fn category(&self) -> Category {
        match self {
            Self::Read { .. } => Category::Read,
            Self::Write { source, .. } => match source.as_ref() {
                kube::Error::Api(status) if status.is_conflict() => Category::Conflict,
                kube::Error::Api(status) if status.is_forbidden() => Category::Forbidden,
                _ => Category::Write,
            },
            Self::Foreign(_) => Category::Foreign,
            Self::InvalidSpec(_) => Category::InvalidSpec,
            Self::Incomplete(_) | Self::Render { .. } => Category::Internal,
        }
    }

    /// The error with its causes, on one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.ends_with(&cause_text) {
                text.push_str(": ");
                text.push_str(&cause_text);
            }
            source = cause.source();
        }
        text
    }
}

/// Categories of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, prometheus_client::encoding::EncodeLabelValue)]
pub enum Category {
    /// Reading from the API server.
    Read,
    /// Writing to the API server.
    Write,
    /// A write lost against another one.
    Conflict,
    /// The operator's role lacks a right.
    Forbidden,
    /// An object belongs to somebody else.
    Foreign,
    /// The spec cannot be carried out.
    InvalidSpec,
    /// A fault of the operator.
    Internal,
}
