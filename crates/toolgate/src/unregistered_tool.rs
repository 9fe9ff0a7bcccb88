//! Judging calls of tools that are not registered.
//!
//! A policy covers all tools of an agent, and may name some that this session does not have: tools of another product,
//! or of an MCP server that is not connected. `toolgate check` and `toolgate policy test` judge calls of these as
//! well, because a judgement needs only a name, an input and an intent. Such a tool cannot run.

use serde_json::{Map, Value};
use toolgate_gate::{CallContext, Gate, IntendedCall, Session};
use toolgate_proto::{
    AbsPath, Code, CommandLine, Effect, Intent, PathScope, Refusal, ShellKind, SourceId, ToolCall,
    ToolIdentity, WriteKind, json,
};

/// The intent of a call: from the registered tool if there is one, else from the table in this module.
pub fn intend(gate: &Gate, session: &Session, call: &ToolCall) -> Result<IntendedCall, Refusal> {
    match gate.derive_intent(session, call) {
        Err(refusal) if refusal.code == Code::UnknownTool => {
            let input = json::parse_object(&call.input, json::JsonLimits::CALL)?;
            let context = CallContext::of(session);
            intend_unregistered(call.name.as_str(), input, &context).unwrap_or(Err(refusal))
        }
        known => known,
    }
}

/// What is known about a tool by its name: the input field that names its object, and its effect on that object.
struct UnregisteredTool {
    /// All names of the tool, the canonical one first.
    names: &'static [&'static str],
    /// The rule family, if it is not the first name.
    family: Option<&'static str>,
    /// Whether the tool changes nothing.
    read_only: bool,
    /// The input field with the command, path, address or name.
    field: &'static str,
    /// Whether the field must be present.
    required: bool,
    /// The effect, from the value of the field, the whole input and the context of the call.
    effect: fn(&str, &Map<String, Value>, &CallContext) -> Effect,
}

/// The tools of this and of other products whose names are known.
const UNREGISTERED_TOOLS: &[UnregisteredTool] = &[
    define_tool(&["Bash", "shell", "run_shell_command", "Monitor"], "command", |text, input, context| {
        let flag = |name: &str| input.get(name).and_then(Value::as_bool).unwrap_or(false);
        let cwd = input.get("cwd").and_then(Value::as_str);
        let shell = match input.get("shell").and_then(Value::as_str) {
            None | Some("bash") => ShellKind::Bash,
            Some(_) => ShellKind::Other,
        };
        Effect::Exec {
            command: CommandLine {
                text: text.to_owned(),
                shell,
                cwd: cwd.map_or_else(|| context.workspace.cwd.clone(), |dir| context.absolute_path(dir)),
                unsandboxed: flag("dangerouslyDisableSandbox"),
            },
        }
    }),
    define_tool(&["PowerShell"], "command", |text, _, context| Effect::Exec {
        command: CommandLine {
            text: text.to_owned(),
            shell: ShellKind::Other,
            cwd: context.workspace.cwd.clone(),
            unsandboxed: false,
        },
    }),
    define_tool(&["Write", "FileWrite"], "file_path", |path, _, context| write_effect(path, context)),
    UnregisteredTool {
        family: Some("Write"),
        ..define_tool(&["write_file"], "path", |path, _, context| write_effect(path, context))
    },
    define_tool(&["Edit", "FileEdit"], "file_path", |path, _, context| edit_effect(path, context)),
    UnregisteredTool {
        family: Some("Edit"),
        ..define_tool(&["MultiEdit"], "file_path", |path, _, context| edit_effect(path, context))
    },
    UnregisteredTool {
        family: Some("Edit"),
        ..define_tool(&["edit_file"], "path", |path, _, context| edit_effect(path, context))
    },
    define_tool(&["NotebookEdit"], "notebook_path", |path, _, context| edit_effect(path, context)),
    as_read_only(define_tool(&["Read", "FileRead", "NotebookRead"], "file_path", |path, _, context| {
        Effect::Read { path: context.absolute_path(path), scope: PathScope::Entry }
    })),
    as_read_only(UnregisteredTool {
        family: Some("Read"),
        ..define_tool(&["read_file"], "path", |path, _, context| Effect::Read {
            path: context.absolute_path(path),
            scope: PathScope::Entry,
        })
    }),
    with_optional_field(as_read_only(define_tool(&["Grep"], "path", |path, _, context| {
        read_tree_effect(path, context)
    }))),
    with_optional_field(as_read_only(define_tool(&["Glob"], "path", |path, _, context| {
        read_tree_effect(path, context)
    }))),
    with_optional_field(as_read_only(UnregisteredTool {
        family: Some("Grep"),
        ..define_tool(&["grep"], "directory", |path, _, context| read_tree_effect(path, context))
    })),
    with_optional_field(as_read_only(UnregisteredTool {
        family: Some("Glob"),
        ..define_tool(&["glob"], "directory", |path, _, context| read_tree_effect(path, context))
    })),
    as_read_only(define_tool(&["WebFetch", "web_fetch"], "url", |url, _, _| Effect::Fetch {
        url: url.to_owned(),
    })),
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
    UnregisteredTool { names, family: None, read_only: false, field, required: true, effect }
}

/// The same tool, which changes nothing.
const fn as_read_only(tool: UnregisteredTool) -> UnregisteredTool {
    UnregisteredTool { read_only: true, ..tool }
}

/// The same tool, whose field may be absent.
const fn with_optional_field(tool: UnregisteredTool) -> UnregisteredTool {
    UnregisteredTool { required: false, ..tool }
}

/// Writing a whole file.
fn write_effect(path: &str, context: &CallContext) -> Effect {
    Effect::Write { path: context.absolute_path(path), kind: WriteKind::Put }
}

/// Changing a part of a file.
fn edit_effect(path: &str, context: &CallContext) -> Effect {
    Effect::Write { path: context.absolute_path(path), kind: WriteKind::Edit }
}

/// Reading a directory and everything below it; an empty path is the working directory.
fn read_tree_effect(path: &str, context: &CallContext) -> Effect {
    Effect::Read {
        path: context.absolute_path(if path.is_empty() { "." } else { path }),
        scope: PathScope::Tree,
    }
}

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
    let field =
        UNREGISTERED_TOOLS.iter().find(|tool| tool.names.contains(&name)).map_or("input", |tool| tool.field);
    let is_path = matches!(field, "file_path" | "notebook_path" | "path" | "directory");
    let value =
        if is_path && !value.starts_with('~') { cwd.join(value).to_string() } else { value.to_owned() };
    let mut input = Map::new();
    if !value.is_empty() {
        input.insert(field.to_owned(), Value::String(value));
        let placeholders: &[(&str, &str)] = match name {
            "Write" | "FileWrite" => &[("content", "")],
            "Edit" | "FileEdit" => &[("old_string", "before"), ("new_string", "after")],
            _ => &[],
        };
        input.extend(placeholders.iter().map(|(field, text)| ((*field).to_owned(), Value::from(*text))));
    }
    Value::Object(input)
}

/// Tools that change only state of toolgate or the host; their input names no file and no address.
const STATEFUL_TOOLS: &[&str] = &[
    "AskUserQuestion",
    "Config",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "KillBash",
    "KillShell",
    "ListMcpResourcesTool",
    "ReadMcpResourceTool",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
    "memory",
    "write_todos",
];

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
    let also = tool.names.iter().filter(|other| **other != name).chain(&tool.family);
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
