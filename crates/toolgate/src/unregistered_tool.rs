//! Judging calls of tools that are not registered.
//!
//! A policy covers all tools of an agent, and may name some that this session does not have: built-in tools of the other
//! toolset, tools of another product, or of an MCP server that is not connected. `toolgate check` and
//! `toolgate policy test` judge calls of these as well, because a judgement needs only a name, an input and an intent.
//! Such a tool cannot run.
//!
//! A tool of toolgate describes itself, also where it is not registered: its input, its effects and its short form are those
//! of the real tool, in a gate that runs nothing. The table below only has tools that toolgate does not have.

use crate::hooks::GateSessionCell;
use crate::settings::config_tool::ConfigTool;
use crate::skills::{CapabilityPlaces, LiveSkills, SkillOptions, SkillTool};
use serde_json::{Map, Value};
use std::sync::{Arc, LazyLock};
use toolgate_agent::subagent::SubagentSource;
use toolgate_gate::{CallContext, Gate, GateParts, IntendedCall, RegisterError, Session};
use toolgate_mcp::client::{CoordinatorOptions, McpCoordinator, PinStore};
use toolgate_proto::{
    AbsPath, Code, CommandLine, Effect, Intent, PathScope, Refusal, ShellKind, SourceId, ToolCall,
    ToolIdentity, json, tool_synonyms,
};
use toolgate_tools::{ToolSearchTool, Toolset};

/// All tools of toolgate in every toolset, to derive intents. These gates are private, so nothing can run in them.
static REFERENCE_GATES: LazyLock<Vec<Arc<Gate>>> = LazyLock::new(|| {
    // A tool that cannot be registered fails every build of a `Toolgate` too, with the reason.
    Toolset::ALL.into_iter().filter_map(|toolset| build_reference_gate(toolset).ok()).collect()
});

/// A gate with every tool of toolgate under its names in a toolset, without what most of them need to run.
fn build_reference_gate(toolset: Toolset) -> Result<Arc<Gate>, RegisterError> {
    let gate = Arc::new(Gate::new(GateParts::default()));
    toolgate_tools::register(&gate, toolset)?;
    gate.register(SourceId::Builtin, ToolSearchTool::new(Arc::downgrade(&gate)))?;
    gate.register(SourceId::Builtin, ConfigTool { settings: None })?;
    let skills = Arc::new(LiveSkills::new(SkillOptions::new(CapabilityPlaces::default())));
    gate.register(SourceId::Builtin, SkillTool { skills, gate_cell: GateSessionCell::default() })?;
    gate.add_source(SubagentSource::default())?;
    let servers = McpCoordinator::new(Vec::new(), CoordinatorOptions::new(PinStore::in_memory()));
    servers.register_resource_tools(&gate)?;
    #[cfg(feature = "lsp")]
    toolgate_lsp::register_without_servers(crate::lsp_servers::tool_name(toolset), &gate)?;
    Ok(gate)
}

/// The intent of a call: from the registered tool if there is one, else from the tool of toolgate with that name, else from
/// the table in this module.
pub fn intend(gate: &Gate, session: &Session, call: &ToolCall) -> Result<IntendedCall, Refusal> {
    let unknown = match gate.derive_intent(session, call) {
        Err(refusal) if refusal.code == Code::UnknownTool => refusal,
        known => return known,
    };
    match intend_own_tool(session, call) {
        Some(intended) => intended,
        None => {
            let input = json::parse_object(&call.input, json::JsonLimits::CALL)?;
            let context = CallContext::of(session);
            intend_unregistered(call.name.as_str(), input, &context).unwrap_or(Err(unknown))
        }
    }
}

/// A name with every reference gate, then its synonyms: other products have some of our tools under another name, with the
/// same input.
fn own_tools(name: &str) -> impl Iterator<Item = (&str, &'static Arc<Gate>)> {
    let synonyms = tool_synonyms(name).iter().copied().filter(move |other| *other != name);
    let names = std::iter::once(name).chain(synonyms);
    names.flat_map(|name| REFERENCE_GATES.iter().map(move |gate| (name, gate)))
}

/// The intent by the tool of toolgate with that name, in whichever toolset it is; `None` if there is none.
fn intend_own_tool(session: &Session, call: &ToolCall) -> Option<Result<IntendedCall, Refusal>> {
    let name = call.name.as_str();
    own_tools(name).find_map(|(own_name, gate)| {
        let own_call = ToolCall::new(call.id.clone(), own_name, call.input.clone());
        let mut intended = gate.derive_registered_intent(session, &own_call)?;
        if let Ok(intended) = &mut intended
            && own_name != name
        {
            // The name stays that of the call: an allow rule for our tool does not cover one of another product.
            intended.tool.name = name.into();
        }
        Some(intended)
    })
}

/// What is known about a tool by its name: the input field that names its object, and its effect on that object.
struct UnregisteredTool {
    /// All names of the tool, the canonical one first.
    names: &'static [&'static str],
    /// Whether the tool changes nothing.
    read_only: bool,
    /// The required input field with the command, address or path.
    field: &'static str,
    /// The effect, from the value of the field and the context of the call.
    effect: fn(&str, &CallContext) -> Effect,
}

/// The tools of other products whose names are known, and which toolgate does not have. A test compares them with all that
/// it has.
const UNREGISTERED_TOOLS: &[UnregisteredTool] = &[
    UnregisteredTool {
        names: &["PowerShell"],
        read_only: false,
        field: "command",
        effect: |text, context| {
            let cwd = context.workspace.cwd.clone();
            Effect::Exec { command: CommandLine::new(text, ShellKind::Other, cwd) }
        },
    },
    UnregisteredTool {
        names: &["NotebookRead"],
        read_only: true,
        field: "notebook_path",
        effect: |path, context| Effect::Read { path: context.absolute_path(path), scope: PathScope::Entry },
    },
    // Built in with the feature `web`.
    #[cfg(not(feature = "web"))]
    UnregisteredTool {
        names: &["WebFetch", "web_fetch"],
        read_only: true,
        field: "url",
        effect: |url, _| Effect::Fetch { url: url.to_owned() },
    },
    #[cfg(not(feature = "web"))]
    UnregisteredTool {
        names: &["WebSearch", "web_search"],
        read_only: true,
        field: "query",
        effect: |query, _| Effect::Search { query: query.to_owned() },
    },
];

/// The input for a call in short form: `Bash ls` is `{"command": "ls"}`. A relative path starts from `cwd`. Other
/// required fields get a placeholder, because no rule matches them ([`Gate::build_short_form`]).
///
/// ```
/// use serde_json::json;
/// use toolgate::AbsPath;
/// use toolgate::unregistered_tool::build_main_field_input;
///
/// let cwd = AbsPath::new("/project").unwrap();
/// assert_eq!(build_main_field_input("Bash", "ls -l", &cwd), json!({ "command": "ls -l" }));
/// let input = build_main_field_input("Read", "src/main.rs", &cwd);
/// assert_eq!(input, json!({ "file_path": "/project/src/main.rs" }));
/// let input = build_main_field_input("read_many_files", "a.txt", &cwd);
/// assert_eq!(input, json!({ "paths": ["/project/a.txt"] }));
/// ```
pub fn build_main_field_input(name: &str, value: &str, cwd: &AbsPath) -> Value {
    let own = own_tools(name).find_map(|(name, gate)| gate.build_short_form(name, value, cwd));
    let input = own.unwrap_or_else(|| {
        let known = UNREGISTERED_TOOLS.iter().find(|tool| tool.names.contains(&name));
        let field = known.map_or("input", |tool| tool.field);
        let value = Some(value).filter(|value| !value.is_empty());
        value.map(|value| (field.to_owned(), Value::from(value))).into_iter().collect()
    });
    Value::Object(input)
}

/// The intent by the name of the tool; `None` if the name is unknown.
fn intend_unregistered(
    name: &str,
    input: Map<String, Value>,
    context: &CallContext,
) -> Option<Result<IntendedCall, Refusal>> {
    if name.starts_with("mcp__") {
        return Some(intend_mcp_tool(name, input));
    }
    let tool = UNREGISTERED_TOOLS.iter().find(|tool| tool.names.contains(&name))?;
    let value = match input.get(tool.field) {
        Some(Value::String(text)) => text.as_str(),
        given => {
            let given = given.map_or_else(|| "missing".to_owned(), json::describe);
            return Some(Err(Refusal::new(
                Code::InvalidInput,
                format!("`/{}` is {given}, but must be a string", tool.field),
            )));
        }
    };
    let effect = (tool.effect)(value, context);
    let also = tool.names.iter().filter(|other| **other != name);
    let also = also.map(|other| (*other).to_owned()).collect();
    let identity = ToolIdentity::new(name, SourceId::Builtin).with_also(also).with_read_only(tool.read_only);
    Some(Ok(IntendedCall::new(identity, input, Intent::new(effect.to_string(), [effect]))))
}

/// A tool of an MCP server, by a name of the form `mcp__SERVER__TOOL`. A name that can be split in two ways is refused:
/// a rule for one pair would match a call of the other.
fn intend_mcp_tool(name: &str, input: Map<String, Value>) -> Result<IntendedCall, Refusal> {
    let pair = name.strip_prefix("mcp__").and_then(|rest| {
        let (server, tool) = rest.split_once("__")?;
        let clear = !server.is_empty()
            && !tool.is_empty()
            && !tool.contains("__")
            && !server.ends_with('_')
            && !tool.starts_with('_');
        clear.then(|| (server.to_owned(), tool.to_owned()))
    });
    let Some((server, tool)) = pair else {
        return Err(Refusal::new(
            Code::UnknownTool,
            format!(
                "the tool name `{name}` is ambiguous: it can be split into server and tool in several ways"
            ),
        )
        .hint("use the form mcp__SERVER__TOOL, without `__` in the server or the tool"));
    };
    let effect = Effect::Remote { server: server.clone(), tool: tool.clone() };
    Ok(IntendedCall::new(
        ToolIdentity::new(name, SourceId::Mcp { server, tool }),
        input,
        Intent::new(effect.to_string(), [effect]),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The tools of the workspace that are in no reference gate: an editor, a schema of the caller, an MCP server or another
    /// program brings them, and no check knows them by name.
    #[cfg(all(feature = "web", feature = "lsp"))]
    const BROUGHT_TOOLS: [&str; 2] = ["EditorRead", "EditorTerminal"];
    /// Tools of demonstrations.
    #[cfg(all(feature = "web", feature = "lsp"))]
    const SHOWN_TOOLS: [&str; 2] = ["deploy", "drop_database"];

    /// Every name that a tool of toolgate has: its own, aliases, its family, and its names in other products.
    fn own_names() -> BTreeSet<String> {
        assert_eq!(REFERENCE_GATES.len(), Toolset::ALL.len(), "a reference gate was not built");
        let names: BTreeSet<String> =
            REFERENCE_GATES.iter().flat_map(|gate| gate.registered_names()).collect();
        let synonyms = names.iter().flat_map(|name| tool_synonyms(name)).map(|name| (*name).to_owned());
        let synonyms: Vec<String> = synonyms.collect();
        let brought = [toolgate_agent::STRUCTURED_OUTPUT_TOOL.to_owned()];
        names.into_iter().chain(synonyms).chain(brought).collect()
    }

    /// Those of these names that a tool of toolgate has.
    fn described_twice<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
        let own = own_names();
        names.into_iter().filter(|name| own.contains(*name)).collect()
    }

    #[test]
    fn no_table_describes_a_tool_that_describes_itself() {
        let described = UNREGISTERED_TOOLS.iter().flat_map(|tool| tool.names.iter().copied());
        assert_eq!(described_twice(described), [""; 0]);
        // Tools of every crate, by every kind of name, are found.
        for name in [
            "Bash",
            "shell",
            "KillShell",
            "FileRead",
            "replace",
            "list_directory",
            "Config",
            "ToolSearch",
            "ReadMcpResourceTool",
            "ListMcpResources",
            "Agent",
            "Task",
            "SendMessage",
            "Skill",
            "StructuredOutput",
        ] {
            assert_eq!(described_twice([name]), [name]);
        }
    }

    /// The names of tools in a source: the literals after `ToolSpec::new(`.
    #[cfg(all(feature = "web", feature = "lsp"))]
    fn declared_names(source: &str) -> impl Iterator<Item = &str> {
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        let declarations = code.split("ToolSpec::new(").skip(1);
        declarations.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
    }

    /// A tool that is missing in the reference gates would be unknown to a check, or would need a table.
    #[test]
    #[cfg(all(feature = "web", feature = "lsp"))]
    #[expect(clippy::disallowed_methods, reason = "tests read the sources")]
    fn every_tool_of_the_workspace_is_in_a_reference_gate() {
        let own = own_names();
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut folders: Vec<_> =
            std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path().join("src")).collect();
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let source = std::fs::read_to_string(&path).unwrap();
                let code: String = source
                    .lines()
                    .filter(|line| !line.trim_start().starts_with("//"))
                    .map(|line| format!("{line}\n"))
                    .collect();
                for name in declared_names(&code) {
                    seen += 1;
                    let is_known =
                        own.contains(name) || BROUGHT_TOOLS.contains(&name) || SHOWN_TOOLS.contains(&name);
                    assert!(is_known, "{}: `{name}` is in no reference gate", path.display());
                }
            }
        }
        assert!(seen > 40, "{seen}");
    }
}
