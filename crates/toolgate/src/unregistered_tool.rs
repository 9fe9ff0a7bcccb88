//! Judging calls of tools that are not registered.
//!
//! A policy covers all tools of an agent, and may name some that this session does not have: built-in tools of the other
//! toolset, tools of another product, or of an MCP server that is not connected. `toolgate check` and
//! `toolgate policy test` judge calls of these as well, because a judgement needs only a name, an input and an intent.
//! Such a tool cannot run.
//!
//! The input of a built-in tool is read by the tool itself, whatever the toolset of the session: the tables below only
//! describe tools that toolgate does not have.

use serde_json::{Map, Value};
use std::sync::LazyLock;
use toolgate_gate::{CallContext, Gate, GateParts, IntendedCall, Session};
use toolgate_proto::{
    AbsPath, Code, CommandLine, Effect, Intent, Refusal, ShellKind, SourceId, ToolCall, ToolIdentity, json,
};
use toolgate_tools::Toolset;

/// The built-in tools of every toolset, to derive intents. These gates are private, so nothing can run in them.
static BUILTIN_GATES: LazyLock<Vec<Gate>> = LazyLock::new(|| {
    let build = |toolset| {
        let gate = Gate::new(GateParts::default());
        // A toolset that cannot be registered fails every build of a `Toolgate` too, with the reason.
        toolgate_tools::register(&gate, toolset).ok().map(|()| gate)
    };
    Toolset::ALL.into_iter().filter_map(build).collect()
});

/// The intent of a call: from the registered tool if there is one, else from the built-in tool of that name, else from
/// the tables in this module.
pub fn intend(gate: &Gate, session: &Session, call: &ToolCall) -> Result<IntendedCall, Refusal> {
    let unknown = match gate.derive_intent(session, call) {
        Err(refusal) if refusal.code == Code::UnknownTool => refusal,
        known => return known,
    };
    match intend_builtin(session, call) {
        Some(intended) => intended,
        None => {
            let input = json::parse_object(&call.input, json::JsonLimits::CALL)?;
            let context = CallContext::of(session);
            intend_unregistered(call.name.as_str(), input, &context).unwrap_or(Err(unknown))
        }
    }
}

/// Names of other products for tools that toolgate has under another name, with the same input.
const RENAMED_TOOLS: &[(&str, &str)] =
    &[("FileRead", "Read"), ("NotebookRead", "Read"), ("FileWrite", "Write"), ("FileEdit", "Edit")];

/// The intent by the built-in tool of that name, in whichever toolset it is; `None` if there is none.
fn intend_builtin(session: &Session, call: &ToolCall) -> Option<Result<IntendedCall, Refusal>> {
    let name = call.name.as_str();
    let builtin =
        RENAMED_TOOLS.iter().find(|(other, _)| *other == name).map_or(name, |(_, builtin)| *builtin);
    let renamed = ToolCall::new(call.id.clone(), builtin, call.input.clone());
    let known = BUILTIN_GATES.iter().map(|gate| gate.derive_intent(session, &renamed));
    let mut known =
        known.filter(|intended| !matches!(intended, Err(refusal) if refusal.code == Code::UnknownTool));
    let mut intended = known.next()?;
    if let Ok(intended) = &mut intended
        && builtin != name
    {
        intended.tool.also.push(builtin.to_owned());
        intended.tool.name = name.into();
    }
    Some(intended)
}

/// What is known about a tool by its name: the input field that names its object, and its effect on that object.
struct UnregisteredTool {
    /// All names of the tool, the canonical one first.
    names: &'static [&'static str],
    /// Whether the tool changes nothing.
    read_only: bool,
    /// The input field with the command, address or name.
    field: &'static str,
    /// Whether the field must be present.
    required: bool,
    /// The effect, from the value of the field, the whole input and the context of the call.
    effect: fn(&str, &Map<String, Value>, &CallContext) -> Effect,
}

/// The tools of other products whose names are known.
const UNREGISTERED_TOOLS: &[UnregisteredTool] = &[
    define_tool(&["PowerShell"], "command", |text, _, context| exec_effect(text, ShellKind::Other, context)),
    // Built in with the feature `web`.
    #[cfg(not(feature = "web"))]
    as_read_only(define_tool(&["WebFetch", "web_fetch"], "url", |url, _, _| Effect::Fetch {
        url: url.to_owned(),
    })),
    #[cfg(not(feature = "web"))]
    as_read_only(define_tool(&["WebSearch", "web_search"], "query", |query, _, _| Effect::Search {
        query: query.to_owned(),
    })),
    with_optional_field(define_tool(&["Agent", "Task"], "subagent_type", |agent, _, _| Effect::Delegate {
        agent: agent.to_owned(),
    })),
    define_tool(&["Skill"], "skill", |name, input, _| Effect::Skill {
        name: name.to_owned(),
        args: input.get("args").and_then(Value::as_str).map(str::to_owned),
    }),
];

/// A tool that changes something and whose field is required.
const fn define_tool(
    names: &'static [&'static str],
    field: &'static str,
    effect: fn(&str, &Map<String, Value>, &CallContext) -> Effect,
) -> UnregisteredTool {
    UnregisteredTool { names, read_only: false, field, required: true, effect }
}

/// The same tool, which changes nothing.
#[cfg(not(feature = "web"))]
const fn as_read_only(tool: UnregisteredTool) -> UnregisteredTool {
    UnregisteredTool { read_only: true, ..tool }
}

/// The same tool, whose field may be absent.
const fn with_optional_field(tool: UnregisteredTool) -> UnregisteredTool {
    UnregisteredTool { required: false, ..tool }
}

/// Running a command line in the working directory.
fn exec_effect(text: &str, shell: ShellKind, context: &CallContext) -> Effect {
    let cwd = context.workspace.cwd.clone();
    Effect::Exec { command: CommandLine { text: text.to_owned(), shell, cwd, unsandboxed: false } }
}

/// The field that a call in short form fills, for built-in tools: the object of the call.
const MAIN_FIELDS: &[(&str, &[&str])] = &[
    ("command", &["Bash", "Monitor", "shell", "run_shell_command"]),
    ("url", &["WebFetch", "web_fetch"]),
    ("query", &["WebSearch", "web_search"]),
    (
        "file_path",
        &["Read", "FileRead", "NotebookRead", "Write", "FileWrite", "Edit", "FileEdit", "MultiEdit"],
    ),
    ("notebook_path", &["NotebookEdit"]),
    ("path", &["read_file", "write_file", "edit_file", "ls", "LS", "Grep", "Glob"]),
    ("directory", &["grep", "glob"]),
];

/// Values for the other required fields of a call in short form. No rule matches them.
const PLACEHOLDERS: &[(&str, &[&str])] = &[
    ("content", &["Write", "FileWrite", "write_file"]),
    ("old_string", &["Edit", "FileEdit"]),
    ("new_string", &["Edit", "FileEdit"]),
    ("new_source", &["NotebookEdit"]),
    ("pattern", &["Grep", "Glob", "grep", "glob"]),
];

/// The input for a call in short form: `Bash ls` is `{"command": "ls"}`. A relative path starts from `cwd`. Other
/// required fields get a placeholder, because no rule matches them.
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
/// ```
pub fn build_main_field_input(name: &str, value: &str, cwd: &AbsPath) -> Value {
    let main = MAIN_FIELDS.iter().find(|(_, names)| names.contains(&name)).map(|(field, _)| *field);
    let other = UNREGISTERED_TOOLS.iter().find(|tool| tool.names.contains(&name)).map(|tool| tool.field);
    let field = main.or(other).unwrap_or("input");
    let is_path = matches!(field, "file_path" | "notebook_path" | "path" | "directory");
    let value =
        if is_path && !value.starts_with('~') { cwd.join(value).to_string() } else { value.to_owned() };
    let mut input = Map::new();
    // As a user types it: the name of a skill, then its arguments.
    let (value, arguments) = match value.split_once(' ') {
        Some((skill, arguments)) if field == "skill" => (skill.to_owned(), Some(arguments.to_owned())),
        Some(_) | None => (value, None),
    };
    if !value.is_empty() {
        input.insert(field.to_owned(), Value::String(value));
    }
    input.extend(arguments.map(|arguments| ("args".to_owned(), Value::String(arguments))));
    let placeholders = PLACEHOLDERS.iter().filter(|(_, names)| names.contains(&name));
    input.extend(
        placeholders
            .enumerate()
            .map(|(index, (field, _))| ((*field).to_owned(), Value::String(format!("placeholder {index}")))),
    );
    Value::Object(input)
}

/// Tools that change only state of toolgate or the host; their input names no file and no address.
const STATEFUL_TOOLS: &[&str] = &["Config", "ListMcpResourcesTool", "ReadMcpResourceTool", "ToolSearch"];

/// The intent by the name of the tool; `None` if the name is unknown.
fn intend_unregistered(
    name: &str,
    input: Map<String, Value>,
    context: &CallContext,
) -> Option<Result<IntendedCall, Refusal>> {
    if name.starts_with("mcp__") {
        return Some(intend_mcp_tool(name, input));
    }
    if STATEFUL_TOOLS.contains(&name) {
        let effect = Effect::State { name: name.to_owned() };
        return Some(Ok(IntendedCall {
            tool: identity(name, Vec::new(), false),
            intent: single_effect_intent(effect),
            input,
        }));
    }
    let tool = UNREGISTERED_TOOLS.iter().find(|tool| tool.names.contains(&name))?;
    let value = match input.get(tool.field) {
        Some(Value::String(text)) => text.as_str(),
        None if !tool.required => "",
        given => {
            let given = given.map_or_else(|| "missing".to_owned(), json::describe);
            return Some(Err(Refusal::new(
                Code::InvalidInput,
                format!("`/{}` is {given}, but must be a string", tool.field),
            )));
        }
    };
    let effect = (tool.effect)(value, &input, context);
    let also = tool.names.iter().filter(|other| **other != name);
    let also = also.map(|other| (*other).to_owned()).collect();
    Some(Ok(IntendedCall {
        tool: identity(name, also, tool.read_only),
        intent: single_effect_intent(effect),
        input,
    }))
}

/// The identity that rules match: a built-in tool with these names.
fn identity(name: &str, also: Vec<String>, read_only: bool) -> ToolIdentity {
    ToolIdentity {
        name: name.into(),
        also,
        source: SourceId::Builtin,
        read_only,
        requires_interaction: false,
    }
}

/// An intent with one effect, described by it.
fn single_effect_intent(effect: Effect) -> Intent {
    Intent::new(effect.to_string(), [effect])
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
    Ok(IntendedCall {
        tool: ToolIdentity {
            name: name.into(),
            also: Vec::new(),
            source: SourceId::Mcp { server, tool },
            read_only: false,
            requires_interaction: false,
        },
        intent: Intent::new(effect.to_string(), [effect]),
        input,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_table_describes_a_tool_that_describes_itself() {
        let builtin = toolgate_tools::builtin_names();
        let described = UNREGISTERED_TOOLS.iter().flat_map(|tool| tool.names).chain(STATEFUL_TOOLS);
        let twice: Vec<_> = described.filter(|name| builtin.contains(**name)).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
