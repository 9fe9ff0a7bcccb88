//! Visibility: which tools a model can see.
//!
//! A call of a hidden tool gets the same refusal as a call of an unknown one.

use std::collections::BTreeSet;
use toolgate_policy::Policy;
use toolgate_proto::ToolIdentity;

/// Which tools of one gate are visible. Policy may hide more (a bare deny rule), never show more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Visibility {
    /// Only these (`--tools`); absent means all.
    pub only: Option<BTreeSet<String>>,
    /// Never these (`--disallowed-tools`, settings, managed policy).
    pub hidden: BTreeSet<String>,
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

    /// Whether a tool is visible.
    pub fn is_visible(&self, tool: &ToolIdentity, policy: &Policy) -> bool {
        self.is_selected(tool) && !policy.hides_tool(tool)
    }

    /// Whether a tool is selected, rules apart.
    pub fn is_selected(&self, tool: &ToolIdentity) -> bool {
        let named_in = |names: &BTreeSet<String>| names.iter().any(|name| tool.has_name(name));
        self.only.as_ref().is_none_or(named_in) && !named_in(&self.hidden)
    }
}
