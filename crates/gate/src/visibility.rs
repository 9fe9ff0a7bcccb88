//! Visibility: which tools a model can see.
//!
//! A call of a hidden tool gets the same refusal as a call of an unknown one.
//!
//! Visible is not the same as listed: a tool of a group that is not loaded can be called by name, under the same rules,
//! but its definition is not sent to models, because every definition costs tokens in every request.

use crate::gate::Gate;
use std::collections::BTreeSet;
use toolgate_policy::Policy;
use toolgate_proto::ToolIdentity;

/// Stands for every group in [`Visibility::groups`].
pub const ALL_GROUPS: &str = "all";

/// The group of the tool that finds other tools. It is loaded by itself where tools wait for a search.
pub const SEARCH_GROUP: &str = "search";

/// Which tools of one gate are visible. Policy may hide more (a bare deny rule), never show more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Visibility {
    /// Only these (`--tools`); absent means all.
    pub only: Option<BTreeSet<String>>,
    /// Of those only these, for a part of a session; absent means all.
    pub also_only: Option<BTreeSet<String>>,
    /// Never these (`--disallowed-tools`, settings, managed policy).
    pub hidden: BTreeSet<String>,
    /// The groups of optional tools whose definitions are listed.
    pub groups: BTreeSet<String>,
    /// How many bytes the definitions of all tools of MCP servers may have together. Beyond that they are found by a
    /// search; absent means that they are always listed.
    pub max_remote_bytes: Option<usize>,
}

impl Visibility {
    /// The same, showing only these tools; absent means all.
    pub fn with_only(mut self, only: Option<BTreeSet<String>>) -> Self {
        self.only = only;
        self
    }

    /// The same, never showing these tools.
    pub fn with_hidden(mut self, hidden: impl IntoIterator<Item = String>) -> Self {
        self.hidden = hidden.into_iter().collect();
        self
    }

    /// The same, listing the tools of these groups.
    pub fn with_groups(mut self, groups: impl IntoIterator<Item = String>) -> Self {
        self.groups = groups.into_iter().collect();
        self
    }

    /// The same, with a budget for the definitions of the tools of MCP servers.
    pub fn with_max_remote_bytes(mut self, max_remote_bytes: Option<usize>) -> Self {
        self.max_remote_bytes = max_remote_bytes;
        self
    }

    /// Whether the definition of a visible tool is listed: it has no group, its group is loaded, or it was selected by
    /// its name.
    pub fn is_listed(&self, tool: &ToolIdentity, group: Option<&str>) -> bool {
        let is_loaded = |group: &str| self.groups.contains(group) || self.groups.contains(ALL_GROUPS);
        group.is_none_or(is_loaded) || self.only.is_some() && self.is_selected(tool)
    }

    /// The same, of which a part of a session sees only these tools; absent means all.
    pub fn with_also_only(mut self, only: Option<BTreeSet<String>>) -> Self {
        self.also_only = only;
        self
    }

    /// Whether a tool is visible.
    pub fn is_visible(&self, tool: &ToolIdentity, policy: &Policy) -> bool {
        self.is_selected(tool) && !policy.hides_tool(tool)
    }

    /// Whether a tool is selected, rules apart.
    pub fn is_selected(&self, tool: &ToolIdentity) -> bool {
        let is_chosen = |only: &Option<BTreeSet<String>>| {
            only.as_ref().is_none_or(|only| tool.names().any(|name| only.contains(name)))
        };
        let is_hidden = || tool.restricted_names().any(|name| self.hidden.contains(name));
        is_chosen(&self.only) && is_chosen(&self.also_only) && (self.hidden.is_empty() || !is_hidden())
    }
}

impl Gate {
    /// The groups of every registered tool, whether it is visible or not.
    pub fn registered_groups(&self) -> BTreeSet<String> {
        self.current().registry.list().filter_map(|tool| tool.spec().group.clone()).collect()
    }
}
