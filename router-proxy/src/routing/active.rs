//! A routing document with its table, checked.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use coterie_crds::routing::{Connector, DOCUMENT_VERSION, PolicyKind, RoutingDocument, SignatureSource};
use coterie_locality::{
    CentroidTable, Fingerprint, Geometry, Policy, Scorer, Source,
    policy::{LeastLoaded, LocalityBand, MarginalCost, PowerOfTwoChoices, RoundRobin},
    prefix_hash::{Overflow, PrefixRing},
    score::Scratch,
    table,
};

use crate::dialect::{Activations, HandOff, Nixl, NpyActivations};

/// Longest document that is read: ConfigMaps end at 1 MiB.
const MAX_DOCUMENT_BYTES: usize = 1 << 20;
const MIN_WINDOW_MS: u64 = 4;

/// Why a document or table was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadDocument {
    #[error("routing document: {0}")]
    Document(String),
    #[error("table {name}: {problem}")]
    Table { name: String, problem: String },
}

impl BadDocument {
    /// Label of the metric.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Self::Document(_) => "document",
            Self::Table { .. } => "table",
        }
    }
}

/// A table in use.
#[derive(Debug)]
pub(crate) struct ActiveTable {
    pub(crate) name: String,
    pub(crate) digest: String,
    pub(crate) table: CentroidTable,
    /// The table's centroids of source Prefill, prepared for decisions.
    pub(crate) scorer: Scorer,
    /// Those of source Text; absent where the table has none.
    pub(crate) text: Option<Scorer>,
    /// Working memory of decisions: as many as were ever made at the same time.
    scratch: Mutex<Vec<Scratch>>,
    /// Monotonic milliseconds.
    pub(crate) since_ms: u64,
}

impl ActiveTable {
    /// Decodes the joined payload and checks that it is the one asked for and fits the model.
    pub(crate) fn decode(
        name: &str,
        digest: &str,
        payload: &[u8],
        fingerprint: &Fingerprint,
        now_ms: u64,
    ) -> Result<Self, BadDocument> {
        let refuse = |problem: String| BadDocument::Table {
            name: name.to_owned(),
            problem,
        };
        let got = table::digest(payload);
        if got != digest {
            return Err(refuse(format!("digest is {got}, the document says {digest}")));
        }
        let table = CentroidTable::decode(payload).map_err(|error| refuse(error.to_string()))?;
        if !table.fingerprint.matches(fingerprint) {
            return Err(refuse(format!(
                "made for {} {}, the fleet serves {} {}",
                table.fingerprint.model, table.fingerprint.geometry, fingerprint.model, fingerprint.geometry
            )));
        }
        let scorer = |source| {
            let part = table.source(source);
            let scorer = part.map(|p| Scorer::new(p.transform, p.centroids)).transpose();
            scorer.map_err(|error| refuse(error.to_string()))
        };
        let text = scorer(Source::Text)?;
        let scorer = scorer(Source::Prefill)?.ok_or_else(|| refuse("it has no centroids".to_owned()))?;
        Ok(Self {
            name: name.to_owned(),
            digest: digest.to_owned(),
            table,
            scorer,
            text,
            scratch: Mutex::default(),
            since_ms: now_ms,
        })
    }

    /// Lends working memory for one decision.
    pub(crate) fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let unused = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let lent = unused().pop();
        let mut scratch = lent.unwrap_or_else(|| self.scorer.scratch());
        let result = work(&mut scratch);
        unused().push(scratch);
        result
    }
}

/// A checked document with everything made from it once.
pub(crate) struct Active {
    pub(crate) document: RoutingDocument,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) table: Option<Arc<ActiveTable>>,
    /// For requests that are signed by counts, or not at all.
    policy: Arc<dyn Policy>,
    /// For requests that are signed by their text: the same, but for the width of the band.
    text_policy: Arc<dyn Policy>,
    pub(crate) handoff: Option<Arc<dyn HandOff>>,
    pub(crate) activations: Arc<dyn Activations>,
}

impl fmt::Debug for Active {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Active")
            .field("generation", &self.document.generation)
            .field("table", &self.table.as_ref().map(|t| &t.digest))
            .finish_non_exhaustive()
    }
}

impl Active {
    /// `previous` lends its policy where nothing about it changed, so that its state (whose turn it is) outlives a new generation.
    pub(crate) fn new(
        document: RoutingDocument,
        table: Option<Arc<ActiveTable>>,
        previous: Option<&Self>,
    ) -> Result<Self, BadDocument> {
        let fingerprint = fingerprint(&document)?;
        let policy = match previous {
            Some(p)
                if p.document.policy == document.policy
                    && p.fingerprint == fingerprint
                    && document.policy != PolicyKind::LocalityBand =>
            {
                Arc::clone(&p.policy)
            }
            _ => make_policy(&document, &fingerprint, tau(table.as_deref(), Source::Prefill))?,
        };
        let text_policy = if document.policy == PolicyKind::LocalityBand {
            make_policy(&document, &fingerprint, tau(table.as_deref(), Source::Text))?
        } else {
            Arc::clone(&policy)
        };
        let handoff: Option<Arc<dyn HandOff>> = match document.connector {
            Connector::Nixl if document.disaggregated => Some(Arc::new(Nixl)),
            Connector::Nixl | Connector::None => None,
        };
        Ok(Self {
            document,
            fingerprint,
            table,
            policy,
            text_policy,
            handoff,
            activations: Arc::new(NpyActivations),
        })
    }

    /// The policy for requests that are signed by this source.
    pub(crate) fn policy(&self, source: Option<Source>) -> &Arc<dyn Policy> {
        match source {
            Some(Source::Text) => &self.text_policy,
            Some(Source::Prefill) | None => &self.policy,
        }
    }

    /// Whether the table can tell requests apart by their text, as the policy does.
    pub(crate) fn knows_text(&self) -> bool {
        let costs = self.document.policy == PolicyKind::MarginalCost;
        self.table.as_ref().is_some_and(|t| {
            let map = t.table.predictors.as_ref().is_some_and(|p| p.text().is_some());
            t.text.is_some() || (costs && map)
        })
    }

    /// Whether requests' text is looked at.
    pub(crate) fn reads_text(&self) -> bool {
        self.document.signature.source != SignatureSource::Prefill && self.knows_text()
    }
}

#[derive(serde::Deserialize)]
struct Version {
    version: u32,
}

/// Parses and checks a document's JSON.
pub(crate) fn parse_document(json: &[u8]) -> Result<RoutingDocument, BadDocument> {
    let refuse = |problem: String| BadDocument::Document(problem);
    if json.len() > MAX_DOCUMENT_BYTES {
        return Err(refuse(format!("{} bytes, at most {MAX_DOCUMENT_BYTES}", json.len())));
    }
    // The version first: what else a newer document holds is not for this build to judge.
    let version: Version = serde_json::from_slice(json).map_err(|e| refuse(e.to_string()))?;
    if version.version != DOCUMENT_VERSION {
        return Err(refuse(format!(
            "version {} is unknown, this build reads {DOCUMENT_VERSION}; update the router image",
            version.version
        )));
    }
    let document: RoutingDocument = serde_json::from_slice(json).map_err(|e| refuse(e.to_string()))?;
    check(&document)?;
    Ok(document)
}

/// Checks what types do not.
pub(crate) fn check(document: &RoutingDocument) -> Result<(), BadDocument> {
    make_policy(document, &fingerprint(document)?, 0.0)?;
    let no_workers: [&str; 0] = [];
    PrefixRing::new(&no_workers, f64::from(document.prefill.load_factor), Overflow::WalkRing)
        .map_err(|e| BadDocument::Document(e.to_string()))?;
    if document.statistics.window_ms < MIN_WINDOW_MS {
        return Err(BadDocument::Document("statistics.windowMs must be at least 4".into()));
    }
    Ok(())
}

fn fingerprint(document: &RoutingDocument) -> Result<Fingerprint, BadDocument> {
    let model = &document.model;
    let size = |v: u32| usize::try_from(v).unwrap_or(usize::MAX);
    let geometry = Geometry::new(size(model.layers), size(model.experts), size(model.top_k))
        .map_err(|e| BadDocument::Document(e.to_string()))?;
    Ok(Fingerprint::new(model.name.clone(), geometry))
}

fn make_policy(
    document: &RoutingDocument,
    fingerprint: &Fingerprint,
    table_tau: f32,
) -> Result<Arc<dyn Policy>, BadDocument> {
    Ok(match document.policy {
        PolicyKind::LeastLoaded => Arc::new(LeastLoaded),
        PolicyKind::RoundRobin => Arc::new(RoundRobin::default()),
        PolicyKind::PowerOfTwoChoices => Arc::new(PowerOfTwoChoices),
        PolicyKind::MarginalCost => Arc::new(MarginalCost::new(&fingerprint.geometry)),
        PolicyKind::LocalityBand => {
            let band = &document.locality_band;
            let tau = band.tau.unwrap_or(table_tau);
            let min = usize::try_from(band.min_candidates).unwrap_or(usize::MAX);
            let policy = LocalityBand::new(tau, min, Some(band.max_load_ratio));
            Arc::new(policy.map_err(|e| BadDocument::Document(e.to_string()))?)
        }
    })
}

/// Width of a source's band. Without centroids there is no similarity, and any width gives the least-loaded worker.
fn tau(table: Option<&ActiveTable>, source: Source) -> f32 {
    table.and_then(|t| t.table.source(source)).map_or(0.0, |part| part.tau)
}
