//! What the router routes by: document, table and workers, as one view that requests read and updates replace.

mod active;
mod state;
mod view;

pub(crate) use active::{Active, ActiveTable, BadDocument, check, parse_document};
pub(crate) use state::RoutingState;
pub(crate) use view::{Member, View};
