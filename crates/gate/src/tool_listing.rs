//! Which definitions are sent to a model.
//!
//! A tool that can be called is not always listed: the tools of a group wait until the group is loaded, and those of MCP
//! servers wait when all of them together are larger than the budget.
//! A tool that a session has found by a search is listed there from then on.

use crate::gate::GateSnapshot;
use crate::registry::RegisteredTool;
use crate::session::Session;
use crate::visibility::{SEARCH_GROUP, Visibility};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};
use toolgate_proto::SourceId;

/// The names of the tools that a session has found by a search.
#[derive(Debug, Default)]
pub(crate) struct FoundTools {
    names: RwLock<BTreeSet<String>>,
}

impl FoundTools {
    /// Adds names; false if all of them were known.
    pub(crate) fn add(&self, names: impl IntoIterator<Item = String>) -> bool {
        let mut known = self.names.write().unwrap_or_else(PoisonError::into_inner);
        let before = known.len();
        known.extend(names);
        known.len() > before
    }

    /// Whether a tool of that name was listed by a search.
    fn contains(&self, name: &str) -> bool {
        self.names.read().unwrap_or_else(PoisonError::into_inner).contains(name)
    }
}

/// The choice of definitions for one session, as tools and rules are now.
pub(crate) struct ToolListing<'g> {
    visibility: &'g Visibility,
    found: Arc<FoundTools>,
    /// The tools of MCP servers are larger than the budget.
    is_deferring: bool,
}

impl<'g> ToolListing<'g> {
    /// Decides once whether the definitions of MCP tools are deferred, for all tools of the listing.
    pub(crate) fn new(snapshot: &'g GateSnapshot, session: &Session) -> Self {
        let visibility = &*snapshot.visibility;
        let is_deferring = visibility.max_remote_bytes.is_some_and(|max_bytes| {
            let remote = snapshot.registry.list().filter(|tool| is_remote(tool));
            let visible = remote.filter(|tool| visibility.is_visible(&tool.identity, &snapshot.policy));
            visible.map(|tool| tool.definition_bytes()).sum::<usize>() > max_bytes
        });
        Self { visibility, found: session.state::<FoundTools>(), is_deferring }
    }

    /// Whether the definition of a visible tool is listed.
    pub(crate) fn is_listed(&self, tool: &RegisteredTool) -> bool {
        let group = tool.spec.group.as_deref();
        let waits = self.is_deferring && is_remote(tool);
        let is_search = self.is_deferring && group == Some(SEARCH_GROUP);
        is_search
            || self.found.contains(tool.identity.name.as_str())
            || self.visibility.is_listed(&tool.identity, if waits { Some(DEFERRED_GROUP) } else { group })
    }
}

/// The group of tools of MCP servers that wait; no settings load it but those that load every group.
const DEFERRED_GROUP: &str = "deferred";

/// Whether a tool comes from an MCP server, whose definitions may be deferred.
fn is_remote(tool: &RegisteredTool) -> bool {
    matches!(tool.identity.source, SourceId::Mcp { .. })
}
