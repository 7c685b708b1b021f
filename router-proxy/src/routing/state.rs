//! Where updates of document and workers meet, and where requests read the result.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use coterie_crds::admin;
use coterie_locality::policy::WorkerId;
use coterie_service::{Gate, Readiness};

use super::{Active, Member, View};
use crate::worker::{Role, Worker, WorkerSpec};

/// The current view, replaced as a whole. Requests take a reference and keep it, so one request sees one state.
#[derive(Debug)]
pub(crate) struct RoutingState {
    view: RwLock<Arc<View>>,
    /// Held while a new view is made, so that no update is lost.
    updating: Mutex<()>,
    problem: Mutex<Option<String>>,
    document_read: Gate,
    workers_read: Gate,
}

impl RoutingState {
    pub(crate) fn new(readiness: &Readiness) -> Self {
        Self {
            view: RwLock::default(),
            updating: Mutex::new(()),
            problem: Mutex::default(),
            document_read: readiness.gate("routing document"),
            workers_read: readiness.gate("worker list"),
        }
    }

    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes a checked document with its table into use.
    pub(crate) fn set_active(&self, active: Arc<Active>) {
        self.update(|old| View::new(Some(active), old.members.clone(), old));
        self.set_problem(None);
        self.document_read.open();
    }

    /// Replaces the list of workers. Those that stay keep their counters; a pod that came back is a new one.
    pub(crate) fn set_workers(&self, mut specs: Vec<WorkerSpec>) {
        specs.sort_by(|a, b| (a.role, &a.name).cmp(&(b.role, &b.name)));
        specs.dedup_by(|a, b| a.role == b.role && a.name == b.name);
        self.update(|old| {
            let members = specs
                .into_iter()
                .map(|spec| {
                    let known = old.members.iter().find(|m| m.worker.is(&spec));
                    let worker = known.map_or_else(|| Arc::new(Worker::new(&spec)), |m| Arc::clone(&m.worker));
                    Member { spec, worker }
                })
                .collect();
            View::new(old.active.clone(), members, old)
        });
        self.workers_read.open();
    }

    /// Why the newest document or table is not in use; `None`: it is.
    pub(crate) fn set_problem(&self, problem: Option<String>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The acknowledgement that the operator asks for.
    pub(crate) fn acknowledgement(&self) -> admin::State {
        let view = self.view();
        let Some(active) = &view.active else {
            return admin::State {
                problem: self.problem(),
                ..admin::State::default()
            };
        };
        admin::State {
            generation: active.document.generation,
            digest: active.table.as_ref().map(|t| t.digest.clone()),
            revisions: active.document.revisions.clone(),
            problem: self.problem(),
        }
    }

    fn update(&self, change: impl FnOnce(&View) -> View) {
        let _one_at_a_time = self.updating.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Arc::new(change(&self.view()));
        if let Some(active) = &next.active {
            let decode = next.members.iter().filter(|m| m.worker.role == Role::Decode);
            let live: Vec<WorkerId> = decode.map(|m| m.worker.id).collect();
            active.policy(None).workers(&live);
        }
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = next;
    }
}
