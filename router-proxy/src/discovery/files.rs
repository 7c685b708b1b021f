//! Without Kubernetes: workers from flags, document from a file or flags, table from a file. Files are read again when they change.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Result, bail};
use coterie_crds::routing::{
    Connector, DOCUMENT_VERSION, LocalityBand, Model, PolicyKind, Prefill, PrefillPolicyKind, RoutingDocument,
    Signature, SignatureSource, Statistics, TableRef,
};
use coterie_locality::table;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{Applier, TableSource};
use crate::{
    args::{Args, FleetArgs, PolicyArg, PrefillPolicyArg, SignatureSourceArg},
    core::Core,
    routing::{BadDocument, parse_document},
    worker::{Role, WorkerSpec},
};

/// How often files are looked at.
const POLL: Duration = Duration::from_millis(250);
/// Revision of workers from flags; a document's own revisions mean nothing for them.
const STATIC_REVISION: &str = "static";

/// The workers that the flags name.
pub(crate) fn workers(args: &Args) -> Result<Vec<WorkerSpec>> {
    let mut workers = Vec::new();
    for (flag, role, list) in [
        ("--prefill", Role::Prefill, &args.prefill),
        ("--decode", Role::Decode, &args.decode),
    ] {
        for entry in list.iter().map(|e| e.trim()).filter(|e| !e.is_empty()) {
            let (name, address) = entry.split_once('=').unwrap_or((entry, entry));
            let port = address.rsplit_once(':').and_then(|(host, port)| {
                let port: u16 = port.parse().ok()?;
                (!host.is_empty()).then_some(port)
            });
            if name.is_empty() || port.is_none() || address.parse::<http::uri::Authority>().is_err() {
                bail!("{flag} {entry:?} is not host:port or name=host:port");
            }
            if workers.iter().any(|w: &WorkerSpec| w.role == role && w.name == name) {
                bail!("{flag} names {name:?} twice");
            }
            workers.push(WorkerSpec {
                name: name.to_owned(),
                role,
                incarnation: String::new(),
                address: address.to_owned(),
                revision: STATIC_REVISION.to_owned(),
                unready: None,
            });
        }
    }
    if !workers.iter().any(|w| w.role == Role::Decode) {
        bail!("no worker: give --decode name=host:port,... or, on Kubernetes, --deployment and --namespace");
    }
    Ok(workers)
}

/// Checks the document that the flags make.
pub(crate) fn document(args: &Args) -> Result<(), BadDocument> {
    crate::routing::check(&from_flags(&args.fleet, !args.prefill.is_empty(), 1))
}

/// Follows the files until `stop`. The first look is over when this returns.
pub(crate) async fn follow(core: Arc<Core>, args: &Args, stop: CancellationToken) -> Result<()> {
    core.routing.set_workers(workers(args)?);
    let files = Files {
        document: args.document.clone(),
        table: args.table.clone(),
        fleet: args.fleet.clone(),
        disaggregated: !args.prefill.is_empty(),
    };
    let applier = Applier::new(
        core,
        TableFile {
            path: args.table.clone(),
        },
    );
    let mut seen = files.stamp().await;
    let mut generation = 1;
    let mut good = applier.apply(files.read(generation).await).await;
    tokio::spawn(async move {
        let mut ticks = interval(POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            let stamp = files.stamp().await;
            if good && stamp == seen {
                continue;
            }
            // Looked at before it is read: a file that changes meanwhile is read once more.
            generation += u64::from(stamp != seen);
            seen = stamp;
            good = applier.apply(files.read(generation).await).await;
        }
    });
    Ok(())
}

#[derive(Debug)]
struct Files {
    document: Option<PathBuf>,
    table: Option<PathBuf>,
    fleet: FleetArgs,
    disaggregated: bool,
}

type Stamp = Option<(SystemTime, u64)>;

impl Files {
    async fn stamp(&self) -> [Stamp; 2] {
        [
            stamp(self.document.as_deref()).await,
            stamp(self.table.as_deref()).await,
        ]
    }

    async fn read(&self, generation: u64) -> Result<RoutingDocument, BadDocument> {
        let mut document = match &self.document {
            None => from_flags(&self.fleet, self.disaggregated, generation),
            Some(path) => {
                let json = tokio::fs::read(path).await;
                let json = json.map_err(|e| BadDocument::Document(format!("read {}: {e}", path.display())))?;
                parse_document(&json)?
            }
        };
        document.revisions = vec![STATIC_REVISION.to_owned()];
        if let Some(path) = &self.table
            && document.table.is_none()
        {
            document.table = Some(table_ref(path).await?);
        }
        Ok(document)
    }
}

async fn stamp(path: Option<&Path>) -> Stamp {
    let metadata = tokio::fs::metadata(path?).await.ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

async fn table_ref(path: &Path) -> Result<TableRef, BadDocument> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match tokio::fs::read(path).await {
        Ok(bytes) => Ok(TableRef {
            name,
            digest: table::digest(&bytes),
            chunks: Vec::new(),
        }),
        Err(error) => Err(BadDocument::Table {
            name,
            problem: format!("read {}: {error}", path.display()),
        }),
    }
}

struct TableFile {
    path: Option<PathBuf>,
}

impl TableSource for TableFile {
    async fn fetch(&self, _: &TableRef) -> Result<Vec<u8>, String> {
        let Some(path) = &self.path else {
            return Err("the document names a table; give its file with --table".to_owned());
        };
        tokio::fs::read(path)
            .await
            .map_err(|e| format!("read {}: {e}", path.display()))
    }
}

fn from_flags(fleet: &FleetArgs, disaggregated: bool, generation: u64) -> RoutingDocument {
    RoutingDocument {
        version: DOCUMENT_VERSION,
        generation,
        deployment: format!("static/{}", fleet.model),
        model: Model {
            name: fleet.model.clone(),
            layers: fleet.layers,
            experts: fleet.experts,
            top_k: fleet.top_k,
        },
        policy: match fleet.policy {
            PolicyArg::LocalityBand => PolicyKind::LocalityBand,
            PolicyArg::MarginalCost => PolicyKind::MarginalCost,
            PolicyArg::LeastLoaded => PolicyKind::LeastLoaded,
            PolicyArg::RoundRobin => PolicyKind::RoundRobin,
            PolicyArg::PowerOfTwoChoices => PolicyKind::PowerOfTwoChoices,
        },
        signature: Signature {
            source: match fleet.signature_source {
                SignatureSourceArg::Auto => SignatureSource::Auto,
                SignatureSourceArg::Prefill => SignatureSource::Prefill,
                SignatureSourceArg::Text => SignatureSource::Text,
            },
        },
        locality_band: LocalityBand {
            tau: fleet.tau,
            min_candidates: fleet.min_candidates,
            max_load_ratio: fleet.max_load_ratio,
        },
        prefill: Prefill {
            policy: match fleet.prefill_policy {
                PrefillPolicyArg::PrefixHash => PrefillPolicyKind::PrefixHash,
                PrefillPolicyArg::LeastLoaded => PrefillPolicyKind::LeastLoaded,
            },
            prefix_bytes: fleet.prefix_bytes,
            load_factor: fleet.load_factor,
        },
        table: None,
        assignment: std::collections::BTreeMap::new(),
        revisions: Vec::new(),
        disaggregated,
        connector: if disaggregated {
            Connector::Nixl
        } else {
            Connector::None
        },
        statistics: Statistics {
            window_ms: u64::try_from(fleet.window.as_millis()).unwrap_or(u64::MAX),
            max_samples: fleet.max_samples,
        },
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn parse(flags: &[&str]) -> Result<Vec<(String, String)>> {
        let args = Args::try_parse_from(std::iter::once("coterie-router").chain(flags.iter().copied()))?;
        Ok(workers(&args)?.into_iter().map(|w| (w.name, w.address)).collect())
    }

    #[test]
    fn workers_have_names_or_are_named_by_their_address() {
        let workers = parse(&["--prefill", "10.0.0.1:8000", "--decode", "a=10.0.0.2:8000,[::1]:8001"]).unwrap();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            workers,
            [
                pair("10.0.0.1:8000", "10.0.0.1:8000"),
                pair("a", "10.0.0.2:8000"),
                pair("[::1]:8001", "[::1]:8001")
            ]
        );
    }

    #[test]
    fn bad_workers_are_refused_with_the_flag() {
        for (flags, word) in [
            (&["--decode", "nowhere"][..], "--decode \"nowhere\""),
            (&["--decode", "a=:80"], "host:port"),
            (&["--decode", "a=h:80,a=h:81"], "twice"),
            (&["--prefill", "h:80"], "no worker"),
            (&[], "--deployment"),
        ] {
            let refused = parse(flags).unwrap_err().to_string();
            assert!(refused.contains(word), "{refused}");
        }
    }

    #[test]
    fn kubernetes_and_flags_exclude_each_other() {
        assert!(parse(&["--deployment", "d", "--namespace", "n", "--decode", "h:80"]).is_err());
    }
}
