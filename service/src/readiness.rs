use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

/// Whether the process may be sent work: every gate must be open.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    gates: Arc<Mutex<Vec<Gate>>>,
}

/// One condition of readiness. Gates begin closed.
#[derive(Clone, Debug)]
pub struct Gate {
    name: &'static str,
    open: Arc<AtomicBool>,
}

impl Readiness {
    /// Adds a gate; `name` appears in /readyz while it is closed.
    pub fn gate(&self, name: &'static str) -> Gate {
        let gate = Gate {
            name,
            open: Arc::default(),
        };
        self.gates
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(gate.clone());
        gate
    }

    /// Names of the closed gates; empty: ready.
    pub fn closed(&self) -> Vec<&'static str> {
        let gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates
            .iter()
            .filter(|gate| !gate.is_open())
            .map(|gate| gate.name)
            .collect()
    }
}

impl Gate {
    /// Opens the gate.
    pub fn open(&self) {
        self.open.store(true, Ordering::Release);
    }
    /// Closes the gate.
    pub fn close(&self) {
        self.open.store(false, Ordering::Release);
    }
    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }
}
