//! Judging tools that are not here.
//!
//! A policy is written for an agent's whole toolset, and may name tools that this build or this session does not have:
//! another product's, an MCP server's that is not connected.
//! They can be judged all the same, because a judgement needs only a name, an input and an intent.
//! Nothing here can be run.

use serde_json::{Map, Value};
use toolgate_gate::{CallContext, Gate, IntendedCall, Session};
use toolgate_proto::{
    AbsPath, Code, CommandLine, Effect, Intent, PathScope, Refusal, ShellKind, SourceId, ToolCall,
    ToolIdentity, WriteKind, json,
};

/// What a call would do: by the registered tool where there is one, else by what is known of the name.
pub fn intend(gate: &Gate, session: &Session, call: &ToolCall) -> Result<IntendedCall, Refusal> {
    match gate.derive_intent(session, call) {
        Err(refusal) if refusal.code == Code::UnknownTool => {
            let input = json::parse_object(&call.input, json::JsonLimits::CALL)?;
            let scene = CallContext::of(session);
            intend_unregistered(call.name.as_str(), input, &scene).unwrap_or(Err(refusal))
        }
        known => known,
    }
}

/// Field by which a tool names what it touches, and what it does with that.
struct UnregisteredTool {
    /// Every name under which the tool goes, the canonical one first.
    names: &'static [&'static str],
    /// The rule family, where it is not the first name.
    family: Option<&'static str>,
    read_only: bool,
    field: &'static str,
    required: bool,
    effect: fn(&str, &Map<String, Value>, &CallContext) -> Effect,
}

const UNREGISTERED_TOOLS: &[UnregisteredTool] = &[
    define_tool(&["Bash", "shell", "run_shell_command", "Monitor"], "command", |text, input, scene| {
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
                cwd: cwd.map_or_else(|| scene.workspace.cwd.clone(), |dir| scene.absolute_path(dir)),
                unsandboxed: flag("dangerouslyDisableSandbox"),
            },
        }
    }),
    define_tool(&["PowerShell"], "command", |text, _, scene| Effect::Exec {
        command: CommandLine {
            text: text.to_owned(),
            shell: ShellKind::Other,
            cwd: scene.workspace.cwd.clone(),
            unsandboxed: false,
        },
    }),
    define_tool(&["Write", "FileWrite"], "file_path", |path, _, scene| write_effect(path, scene)),
    UnregisteredTool {
        family: Some("Write"),
        ..define_tool(&["write_file"], "path", |path, _, scene| write_effect(path, scene))
    },
    define_tool(&["Edit", "FileEdit"], "file_path", |path, _, scene| edit_effect(path, scene)),
    UnregisteredTool {
        family: Some("Edit"),
        ..define_tool(&["MultiEdit"], "file_path", |path, _, scene| edit_effect(path, scene))
    },
    UnregisteredTool {
        family: Some("Edit"),
        ..define_tool(&["edit_file"], "path", |path, _, scene| edit_effect(path, scene))
    },
    define_tool(&["NotebookEdit"], "notebook_path", |path, _, scene| edit_effect(path, scene)),
    as_read_only(define_tool(&["Read", "FileRead", "NotebookRead"], "file_path", |path, _, scene| {
        Effect::Read { path: scene.absolute_path(path), scope: PathScope::Entry }
    })),
    as_read_only(UnregisteredTool {
        family: Some("Read"),
        ..define_tool(&["read_file"], "path", |path, _, scene| Effect::Read {
            path: scene.absolute_path(path),
            scope: PathScope::Entry,
        })
    }),
    with_optional_field(as_read_only(define_tool(&["Grep"], "path", |path, _, scene| {
        read_tree_effect(path, scene)
    }))),
    with_optional_field(as_read_only(define_tool(&["Glob"], "path", |path, _, scene| {
        read_tree_effect(path, scene)
    }))),
    with_optional_field(as_read_only(UnregisteredTool {
        family: Some("Grep"),
        ..define_tool(&["grep"], "directory", |path, _, scene| read_tree_effect(path, scene))
    })),
    with_optional_field(as_read_only(UnregisteredTool {
        family: Some("Glob"),
        ..define_tool(&["glob"], "directory", |path, _, scene| read_tree_effect(path, scene))
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

const fn define_tool(
    names: &'static [&'static str],
    field: &'static str,
    effect: fn(&str, &Map<String, Value>, &CallContext) -> Effect,
) -> UnregisteredTool {
    UnregisteredTool { names, family: None, read_only: false, field, required: true, effect }
}

const fn as_read_only(sheet: UnregisteredTool) -> UnregisteredTool {
    UnregisteredTool { read_only: true, ..sheet }
}

const fn with_optional_field(sheet: UnregisteredTool) -> UnregisteredTool {
    UnregisteredTool { required: false, ..sheet }
}

fn write_effect(path: &str, scene: &CallContext) -> Effect {
    Effect::Write { path: scene.absolute_path(path), kind: WriteKind::Put }
}

fn edit_effect(path: &str, scene: &CallContext) -> Effect {
    Effect::Write { path: scene.absolute_path(path), kind: WriteKind::Edit }
}

fn read_tree_effect(path: &str, scene: &CallContext) -> Effect {
    Effect::Read {
        path: scene.absolute_path(if path.is_empty() { "." } else { path }),
        scope: PathScope::Tree,
    }
}

/// The input that a tool's main field alone makes: `Bash ls` is `{"command": "ls"}`. A relative path is seen from
/// `cwd`. What else a tool must be told is filled in, since no rule looks at it.
pub fn build_main_field_input(name: &str, value: &str, cwd: &AbsPath) -> Value {
    let field = UNREGISTERED_TOOLS
        .iter()
        .find(|sheet| sheet.names.contains(&name))
        .map_or("input", |sheet| sheet.field);
    let is_path = matches!(field, "file_path" | "notebook_path" | "path" | "directory");
    let value =
        if is_path && !value.starts_with('~') { cwd.join(value).to_string() } else { value.to_owned() };
    let mut input = Map::new();
    if !value.is_empty() {
        input.insert(field.to_owned(), Value::String(value));
        let beside: &[(&str, &str)] = match name {
            "Write" | "FileWrite" => &[("content", "")],
            "Edit" | "FileEdit" => &[("old_string", "before"), ("new_string", "after")],
            _ => &[],
        };
        input.extend(beside.iter().map(|(field, text)| ((*field).to_owned(), Value::from(*text))));
    }
    Value::Object(input)
}

/// Tools that keep something of toolgate's or the host's own; nothing in their input names a file or an address.
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

/// `None` where nothing is known of the name.
fn intend_unregistered(
    name: &str,
    input: Map<String, Value>,
    scene: &CallContext,
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
    let sheet = UNREGISTERED_TOOLS.iter().find(|sheet| sheet.names.contains(&name))?;
    let value = match input.get(sheet.field) {
        Some(Value::String(text)) => text.as_str(),
        None if !sheet.required => "",
        given => {
            let given = given.map_or_else(|| "missing".to_owned(), json::describe);
            return Some(Err(Refusal::new(
                Code::InvalidInput,
                format!("`/{}` is {given}, but must be a string", sheet.field),
            )));
        }
    };
    let effect = (sheet.effect)(value, &input, scene);
    let also = sheet.names.iter().filter(|other| **other != name).chain(&sheet.family);
    let also = also.map(|other| (*other).to_owned()).collect();
    Some(Ok(IntendedCall {
        tool: identity(name, also, sheet.read_only),
        intent: single_effect_intent(effect),
        input,
    }))
}

fn identity(name: &str, also: Vec<String>, read_only: bool) -> ToolIdentity {
    ToolIdentity {
        name: name.into(),
        also,
        source: SourceId::Builtin,
        read_only,
        requires_interaction: false,
    }
}

fn single_effect_intent(effect: Effect) -> Intent {
    Intent::new(effect.to_string(), [effect])
}

/// A tool of a server, by the joined name. The pair is only clear where the name has exactly one place to split.
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
            format!("`{name}` does not say clearly which server and which tool it means"),
        )
        .hint("name it mcp__SERVER__TOOL, with no `__` inside either"));
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
