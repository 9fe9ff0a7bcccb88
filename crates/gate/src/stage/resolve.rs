//! resolve: is there a tool of that name, and is it visible?

use crate::call_context::{CallContext, PipelineContext};
use crate::gate::GateSnapshot;
use crate::registry::RegisteredTool;
use crate::schema::nearest;
use std::sync::Arc;
use toolgate_proto::{Code, Refusal, Stage, ToolIdentity, ToolName, format_count, tool_synonyms};

/// How many names the hint of an unknown tool lists. Servers may bring thousands, which would fill the context of a model.
const MAX_LISTED_NAMES: usize = 20;

/// A tool that exists and is visible.
pub(crate) struct ResolvedTool {
    /// The tool, as it is registered.
    pub(crate) tool: Arc<RegisteredTool>,
}

impl ResolvedTool {
    /// What policy, hooks and records know of the tool.
    pub(crate) fn identity(&self) -> &ToolIdentity {
        &self.tool.identity
    }
}

/// Finds a tool that the session may see.
fn resolve(current: &GateSnapshot, name: &ToolName, context: &CallContext) -> Result<ResolvedTool, Refusal> {
    find(current, name, |tool| {
        current.visibility.is_visible(&tool.identity, &current.policy) && tool.tool.is_enabled(context)
    })
}

/// The same, and waits for a tool that a source expects, such as one of a server that is still starting. A name that
/// would be hidden is not waited for.
pub(crate) async fn resolve_expected(context: &PipelineContext<'_>) -> Result<ResolvedTool, Refusal> {
    let (current, name) = (&context.snapshot, &context.call.name);
    let unknown = match resolve(current, name, &context.call_context) {
        Ok(found) => return Ok(found),
        Err(refusal) if current.registry.get(name.as_str()).is_some() => return Err(refusal),
        Err(refusal) => refusal,
    };
    let Some((source, id)) = context.gate.expecting_source(name.as_str()) else { return Err(unknown) };
    let identity = ToolIdentity::new(name.clone(), id);
    if !current.visibility.is_visible(&identity, &current.policy) {
        return Err(unknown);
    }
    let waiting = async { Ok(source.wait_for_tool(name.as_str()).await) };
    let problem = context.await_unless_stopped(Stage::Resolve, waiting).await?;
    let current = current.clone().with_registry(context.gate.current().registry);
    match (resolve(&current, name, &context.call_context), problem) {
        (Ok(found), _) => Ok(found),
        (Err(_), Some(problem)) if current.registry.get(name.as_str()).is_none() => {
            Err(problem.at_stage(Stage::Resolve))
        }
        (Err(unknown), _) => Err(unknown),
    }
}

/// The same, but a tool that only a deny rule hides is found.
pub(crate) fn resolve_ignoring_deny_rules(
    current: &GateSnapshot,
    name: &ToolName,
    context: &CallContext,
) -> Result<ResolvedTool, Refusal> {
    find(current, name, |tool| {
        current.visibility.is_selected(&tool.identity) && tool.tool.is_enabled(context)
    })
}

/// Finds a tool by name among those that `shown` accepts, or refuses with the nearest of their names.
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
            Err(match find_meant_tool(name.as_str(), visible.iter().copied()) {
                Some(near) => refusal.hint(format!("did you mean `{near}`?")),
                None if visible.is_empty() => refusal.hint("no tools are available"),
                None => refusal.hint(list_names(&visible_alike(name.as_str(), visible))),
            })
        }
    }
}

/// The tool that a name means which no tool has: one that has this name in another toolset or product, or a similar name.
pub fn find_meant_tool<'t>(name: &str, tools: impl Iterator<Item = &'t str> + Clone) -> Option<&'t str> {
    tools.clone().find(|tool| is_same_tool(name, tool)).or_else(|| nearest(name, tools))
}

/// The tools that a hint about an unknown name lists: those of MCP servers for the name of such a tool, because the names
/// of all others say nothing about it, else all.
fn visible_alike<'t>(name: &str, visible: Vec<&'t str>) -> Vec<&'t str> {
    let is_of_server = |name: &str| name.starts_with("mcp__");
    let alike: Vec<&str> = visible.iter().copied().filter(|tool| is_of_server(tool)).collect();
    if is_of_server(name) && !alike.is_empty() { alike } else { visible }
}

/// Whether a name is one that this tool has in another toolset or product, however it is capitalised and separated.
fn is_same_tool(name: &str, tool: &str) -> bool {
    let letters = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    let wanted = letters(name);
    tool_synonyms(tool).iter().any(|synonym| letters(synonym) == wanted)
}

/// The names of the visible tools, or some of them if there are many.
fn list_names(visible: &[&str]) -> String {
    match visible.get(..MAX_LISTED_NAMES) {
        Some(first) if visible.len() > MAX_LISTED_NAMES => {
            let others = format_count((visible.len() - first.len()) as u64, "other", "others");
            format!("the tools are {} and {others}", first.join(", "))
        }
        Some(_) | None => format!("the tools are {}", visible.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_another_toolset_means_the_same_tool() {
        for (name, tool) in [
            ("read_file", "Read"),
            ("ReadFile", "Read"),
            ("run_shell_command", "Bash"),
            ("Bash", "shell"),
            ("list-directory", "ls"),
            ("replace", "Edit"),
        ] {
            assert!(is_same_tool(name, tool), "{name} {tool}");
        }
        for (name, tool) in [("read_file", "read_many_files"), ("deploy", "Deploy"), ("Bash", "Read")] {
            assert!(!is_same_tool(name, tool), "{name} {tool}");
        }
    }

    #[test]
    fn a_hint_lists_a_bounded_number_of_names() {
        let names: Vec<String> = (0..1_000).map(|number| format!("mcp__server__tool_{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(list_names(&["ls", "Read"]), "the tools are ls, Read");
        let hint = list_names(&names);
        assert!(hint.ends_with("mcp__server__tool_19 and 980 others"), "{hint}");
    }
}
