//! Takes routing documents into use, with their tables, or says why not.

use std::{fmt, sync::Arc};

use coterie_crds::routing::{RoutingDocument, TableRef};

use crate::{
    core::Core,
    routing::{Active, ActiveTable, BadDocument},
};

/// Where a table's payload comes from.
pub(crate) trait TableSource: Send + Sync {
    /// The joined payload; the error is a sentence for a person.
    fn fetch(&self, table: &TableRef) -> impl Future<Output = Result<Vec<u8>, String>> + Send;
}

/// Applies documents one after the other.
pub(crate) struct Applier<S> {
    core: Arc<Core>,
    source: S,
}

impl<S> fmt::Debug for Applier<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Applier").finish_non_exhaustive()
    }
}

impl<S: TableSource> Applier<S> {
    pub(crate) fn new(core: Arc<Core>, source: S) -> Self {
        Self { core, source }
    }

    /// Takes a document into use; whether it is. A document or table that is refused leaves the last good ones in use. Where there is no
    /// last good one, a document is used without its table meanwhile: requests are answered, least-loaded.
    pub(crate) async fn apply(&self, document: Result<RoutingDocument, BadDocument>) -> bool {
        let routing = &self.core.routing;
        let previous = routing.view().active.clone();
        let refused = match document {
            Err(refused) => refused,
            Ok(document) => match self.activate(&document, previous.as_deref()).await {
                Ok(active) => {
                    tracing::info!(
                        generation = active.document.generation,
                        table = active.table.as_ref().map(|t| t.name.as_str()),
                        "routing document in use"
                    );
                    routing.set_active(Arc::new(active));
                    return true;
                }
                Err(refused) => {
                    if previous.is_none()
                        && let Ok(bare) = Active::new(without_table(document), None, None)
                    {
                        routing.set_active(Arc::new(bare));
                    }
                    refused
                }
            },
        };
        let problem = refused.to_string();
        if routing.problem().as_deref() != Some(&problem) {
            tracing::error!(%problem, "the newest routing document is not in use");
            self.core.metrics.rejected(refused.what());
        }
        routing.set_problem(Some(problem));
        false
    }

    async fn activate(&self, document: &RoutingDocument, previous: Option<&Active>) -> Result<Active, BadDocument> {
        crate::routing::check(document)?;
        let table = match &document.table {
            None => None,
            Some(wanted) => Some(self.table(document, wanted, previous).await?),
        };
        Active::new(document.clone(), table, previous)
    }

    async fn table(
        &self,
        document: &RoutingDocument,
        wanted: &TableRef,
        previous: Option<&Active>,
    ) -> Result<Arc<ActiveTable>, BadDocument> {
        let fingerprint = Active::new(without_table(document.clone()), None, None)?.fingerprint;
        if let Some(known) = previous.and_then(|p| p.table.as_ref())
            && known.digest == wanted.digest
            && known.name == wanted.name
            && known.table.fingerprint.matches(&fingerprint)
        {
            return Ok(Arc::clone(known));
        }
        let refuse = |problem: String| BadDocument::Table {
            name: wanted.name.clone(),
            problem,
        };
        let payload = self.source.fetch(wanted).await.map_err(refuse)?;
        let (name, digest) = (wanted.name.clone(), wanted.digest.clone());
        let now = self.core.clock.monotonic_ms();
        // Inflating megabytes would hold up the streams of this thread.
        let decode = move || ActiveTable::decode(&name, &digest, &payload, &fingerprint, now);
        match tokio::task::spawn_blocking(decode).await {
            Ok(decoded) => decoded.map(Arc::new),
            Err(error) => Err(refuse(format!("decoding was interrupted: {error}"))),
        }
    }
}

fn without_table(document: RoutingDocument) -> RoutingDocument {
    RoutingDocument {
        table: None,
        ..document
    }
}
