//! Which tools a model is shown.
//!
//! A tool that is not shown is not there: a call of it gets the same refusal as a call of nonsense.

use std::collections::BTreeSet;
use toolgate_policy::Policy;
use toolgate_proto::ToolIdentity;

/// The choice of tools of one gate. Policy may hide more (a bare deny rule), never show more.
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

    /// Whether a tool is shown.
    pub fn is_visible(&self, tool: &ToolIdentity, policy: &Policy) -> bool {
        self.is_selected(tool) && !policy.hides_tool(tool)
    }

    /// Whether the choice alone, without the rules, shows a tool.
    pub fn is_selected(&self, tool: &ToolIdentity) -> bool {
        let named_in = |names: &BTreeSet<String>| names.iter().any(|name| tool.has_name(name));
        self.only.as_ref().is_none_or(named_in) && !named_in(&self.hidden)
    }
}
