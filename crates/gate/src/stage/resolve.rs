//! resolve: is there a tool of that name, and is it shown here?

use crate::gate::Current;
use crate::registry::RegisteredTool;
use crate::schema::nearest;
use std::sync::Arc;
use toolgate_proto::{Code, Refusal, ToolIdentity, ToolName};

/// A tool that is there and shown.
pub(crate) struct Found {
    pub(crate) tool: Arc<RegisteredTool>,
}

impl Found {
    pub(crate) fn identity(&self) -> &ToolIdentity {
        &self.tool.identity
    }
}

pub(crate) fn resolve(current: &Current, name: &ToolName) -> Result<Found, Refusal> {
    find(current, name, |tool| current.visibility.shows(&tool.identity, &current.policy))
}

/// The same, but a tool that only a deny rule hides is found.
pub(crate) fn known(current: &Current, name: &ToolName) -> Result<Found, Refusal> {
    find(current, name, |tool| current.visibility.offers(&tool.identity))
}

fn find(
    current: &Current,
    name: &ToolName,
    shown: impl Fn(&RegisteredTool) -> bool,
) -> Result<Found, Refusal> {
    match current.registry.get(name.as_str()) {
        Some(tool) if shown(tool) => Ok(Found { tool: Arc::clone(tool) }),
        // Hidden and unknown get the same words: a model is not told what it may not see.
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
