//! resolve: is there a tool of that name, and is it visible?

use crate::gate::GateSnapshot;
use crate::registry::RegisteredTool;
use crate::schema::nearest;
use std::sync::Arc;
use toolgate_proto::{Code, Refusal, ToolIdentity, ToolName};

/// A tool that exists and is visible.
pub(crate) struct ResolvedTool {
    pub(crate) tool: Arc<RegisteredTool>,
}

impl ResolvedTool {
    pub(crate) fn identity(&self) -> &ToolIdentity {
        &self.tool.identity
    }
}

pub(crate) fn resolve(current: &GateSnapshot, name: &ToolName) -> Result<ResolvedTool, Refusal> {
    find(current, name, |tool| current.visibility.is_visible(&tool.identity, &current.policy))
}

/// The same, but a tool that only a deny rule hides is found.
pub(crate) fn resolve_ignoring_deny_rules(
    current: &GateSnapshot,
    name: &ToolName,
) -> Result<ResolvedTool, Refusal> {
    find(current, name, |tool| current.visibility.is_selected(&tool.identity))
}

fn find(
    current: &GateSnapshot,
    name: &ToolName,
    shown: impl Fn(&RegisteredTool) -> bool,
) -> Result<ResolvedTool, Refusal> {
    match current.registry.get(name.as_str()) {
        Some(tool) if shown(tool) => Ok(ResolvedTool { tool: Arc::clone(tool) }),
        // Hidden and unknown tools get the same refusal: a model must not learn what it may not see.
        Some(_) | None => {
            let visible: Vec<&str> = current
                .registry
                .list()
                .filter(|tool| shown(tool))
                .map(|tool| tool.identity.name.as_str())
                .collect();
            let refusal = Refusal::new(Code::UnknownTool, format!("there is no tool `{name}` here"));
            Err(match nearest(name.as_str(), visible.iter().copied()) {
                Some(near) => refusal.hint(format!("did you mean `{near}`?")),
                None if visible.is_empty() => refusal.hint("no tools are available"),
                None => refusal.hint(format!("the tools are {}", visible.join(", "))),
            })
        }
    }
}
