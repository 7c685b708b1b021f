//! Registers metrics and remembers their descriptions, from which METRICS.md is made.

use prometheus_client::registry::{Metric, Registry};

/// Description of one metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Name as scraped.
    pub name: String,
    /// `counter`, `gauge`, `histogram` or `info`.
    pub kind: &'static str,
    /// Label names.
    pub labels: &'static [&'static str],
    /// What it counts.
    pub help: &'static str,
}

/// Prefix of every metric of the router.
pub(crate) const PREFIX: &str = "coterie_router";

/// A registry that remembers.
#[derive(Debug)]
pub(super) struct Catalog<'a> {
    registry: &'a mut Registry,
    pub(super) described: Vec<Described>,
}

impl<'a> Catalog<'a> {
    pub(super) fn new(registry: &'a mut Registry) -> Self {
        Self {
            registry,
            described: Vec::new(),
        }
    }

    /// Registers a clone of the metric and gives it back.
    pub(super) fn add<M: Metric + Clone>(
        &mut self,
        name: &'static str,
        kind: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
        metric: M,
    ) -> M {
        self.registry.register(name, help, metric.clone());
        let suffix = if kind == "counter" { "_total" } else { "" };
        self.described.push(Described {
            name: format!("{PREFIX}_{name}{suffix}"),
            kind,
            labels,
            help,
        });
        metric
    }
}
