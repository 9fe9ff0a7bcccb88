//! Judging tools that are not here.
//!
//! A policy is written for an agent's whole toolset, and may name tools that this build or this session does not have:
//! another product's, an MCP server's that is not connected.
//! They can be judged all the same, because a judgement needs only a name, an input and an intent.
//! Nothing here can be run.

use serde_json::{Map, Value};
use toolgate_gate::{Gate, Intended, Scene, Session};
use toolgate_proto::{
    AbsPath, Code, CommandLine, Effect, Intent, Refusal, Scope, Shell, SourceId, ToolCall, ToolIdentity,
    WriteKind, json,
};

/// What a call would do: by the registered tool where there is one, else by what is known of the name.
pub fn intend(gate: &Gate, session: &Session, call: &ToolCall) -> Result<Intended, Refusal> {
    match gate.intend(session, call) {
        Err(refusal) if refusal.code == Code::UnknownTool => {
            let input = json::parse_object(&call.input, json::Limits::CALL)?;
            let scene = Scene::of(session);
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
    effect: fn(&str, &Map<String, Value>, &Scene) -> Effect,
}

const SHEETS: &[UnregisteredTool] = &[
    sheet(&["Bash", "shell", "run_shell_command", "Monitor"], "command", |text, input, scene| {
        let flag = |name: &str| input.get(name).and_then(Value::as_bool).unwrap_or(false);
        let cwd = input.get("cwd").and_then(Value::as_str);
        let shell = match input.get("shell").and_then(Value::as_str) {
            None | Some("bash") => Shell::Bash,
            Some(_) => Shell::Other,
        };
        Effect::Exec {
            command: CommandLine {
                text: text.to_owned(),
                shell,
                cwd: cwd.map_or_else(|| scene.workspace.cwd.clone(), |dir| scene.path(dir)),
                unsandboxed: flag("dangerouslyDisableSandbox"),
            },
        }
    }),
    sheet(&["PowerShell"], "command", |text, _, scene| Effect::Exec {
        command: CommandLine {
            text: text.to_owned(),
            shell: Shell::Other,
            cwd: scene.workspace.cwd.clone(),
            unsandboxed: false,
        },
    }),
    sheet(&["Write", "FileWrite"], "file_path", |path, _, scene| put(path, scene)),
    UnregisteredTool {
        family: Some("Write"),
        ..sheet(&["write_file"], "path", |path, _, scene| put(path, scene))
    },
    sheet(&["Edit", "FileEdit"], "file_path", |path, _, scene| edit(path, scene)),
    UnregisteredTool {
        family: Some("Edit"),
        ..sheet(&["MultiEdit"], "file_path", |path, _, scene| edit(path, scene))
    },
    UnregisteredTool {
        family: Some("Edit"),
        ..sheet(&["edit_file"], "path", |path, _, scene| edit(path, scene))
    },
    sheet(&["NotebookEdit"], "notebook_path", |path, _, scene| edit(path, scene)),
    reader(sheet(&["Read", "FileRead", "NotebookRead"], "file_path", |path, _, scene| Effect::Read {
        path: scene.path(path),
        scope: Scope::Entry,
    })),
    reader(UnregisteredTool {
        family: Some("Read"),
        ..sheet(&["read_file"], "path", |path, _, scene| Effect::Read {
            path: scene.path(path),
            scope: Scope::Entry,
        })
    }),
    optional(reader(sheet(&["Grep"], "path", |path, _, scene| tree(path, scene)))),
    optional(reader(sheet(&["Glob"], "path", |path, _, scene| tree(path, scene)))),
    optional(reader(UnregisteredTool {
        family: Some("Grep"),
        ..sheet(&["grep"], "directory", |path, _, scene| tree(path, scene))
    })),
    optional(reader(UnregisteredTool {
        family: Some("Glob"),
        ..sheet(&["glob"], "directory", |path, _, scene| tree(path, scene))
    })),
    reader(sheet(&["WebFetch", "web_fetch"], "url", |url, _, _| Effect::Fetch { url: url.to_owned() })),
    reader(sheet(&["WebSearch", "web_search"], "query", |query, _, _| Effect::Search {
        query: query.to_owned(),
    })),
    optional(sheet(&["Agent", "Task"], "subagent_type", |agent, _, _| Effect::Delegate {
        agent: agent.to_owned(),
    })),
    sheet(&["Skill"], "skill", |name, input, _| Effect::Skill {
        name: name.to_owned(),
        args: input.get("args").and_then(Value::as_str).map(str::to_owned),
    }),
];

const fn sheet(
    names: &'static [&'static str],
    field: &'static str,
    effect: fn(&str, &Map<String, Value>, &Scene) -> Effect,
) -> UnregisteredTool {
    UnregisteredTool { names, family: None, read_only: false, field, required: true, effect }
}

const fn reader(sheet: UnregisteredTool) -> UnregisteredTool {
    UnregisteredTool { read_only: true, ..sheet }
}

const fn optional(sheet: UnregisteredTool) -> UnregisteredTool {
    UnregisteredTool { required: false, ..sheet }
}

fn put(path: &str, scene: &Scene) -> Effect {
    Effect::Write { path: scene.path(path), kind: WriteKind::Put }
}

fn edit(path: &str, scene: &Scene) -> Effect {
    Effect::Write { path: scene.path(path), kind: WriteKind::Edit }
}

fn tree(path: &str, scene: &Scene) -> Effect {
    Effect::Read { path: scene.path(if path.is_empty() { "." } else { path }), scope: Scope::Tree }
}

/// The input that a tool's main field alone makes: `Bash ls` is `{"command": "ls"}`. A relative path is seen from
/// `cwd`. What else a tool must be told is filled in, since no rule looks at it.
pub fn build_main_field_input(name: &str, value: &str, cwd: &AbsPath) -> Value {
    let field = SHEETS.iter().find(|sheet| sheet.names.contains(&name)).map_or("input", |sheet| sheet.field);
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
const STATEFUL: &[&str] = &[
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
    scene: &Scene,
) -> Option<Result<Intended, Refusal>> {
    if name.starts_with("mcp__") {
        return Some(remote(name, input));
    }
    if STATEFUL.contains(&name) {
        let effect = Effect::State { name: name.to_owned() };
        return Some(Ok(Intended { tool: identity(name, Vec::new(), false), intent: summed(effect), input }));
    }
    let sheet = SHEETS.iter().find(|sheet| sheet.names.contains(&name))?;
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
    Some(Ok(Intended { tool: identity(name, also, sheet.read_only), intent: summed(effect), input }))
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

fn summed(effect: Effect) -> Intent {
    Intent::new(effect.to_string(), [effect])
}

/// A tool of a server, by the joined name. The pair is only clear where the name has exactly one place to split.
fn remote(name: &str, input: Map<String, Value>) -> Result<Intended, Refusal> {
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
    Ok(Intended {
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
