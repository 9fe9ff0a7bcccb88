//! `toolgate mcp add`, `add-json`, `remove`, `list` and `get`: the configured MCP servers.
//!
//! There are two lists: the user's, in the configuration directory, and the project's, in `.mcp.json`. A server starts
//! only after its launch command was approved; adding one with this command approves it.

use super::super::context::CliContext;
use super::super::output::{CliOutput, paint, style};
use super::super::{CliError, CliExitCode};
use super::upstreams::{UpstreamServers, open_pins};
use clap::ValueEnum;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use toolgate::mcp::client::{ServerEntry, ServerListOrigin, ServerState, ServerTransport, read_server};
use toolgate::mcp_servers::{PROJECT_MCP_SERVERS_FILE, describe_damaged_list};
use toolgate::render::escape_invisible;
use toolgate_proto::AbsPath;
use toolgate_proto::json::{JsonLimits, parse};

/// What is printed where no server is configured.
pub(super) const NO_SERVERS: &str = "no servers are configured; add one with `toolgate mcp add NAME COMMAND`";

/// Which list an entry belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpScopeArg {
    /// Your list, for all projects
    User,
    /// The project's list, in .mcp.json
    Project,
}

/// How toolgate connects to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpTransportArg {
    /// Start a program and use its standard streams
    Stdio,
    /// Connect to a URL
    Http,
}

/// Arguments of `toolgate mcp add`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpAddArgs {
    /// Name of the server
    name: String,
    /// Program to start, or URL to connect to
    command: String,
    /// Arguments of the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
    /// List to add the server to
    #[arg(long, short, default_value = "user")]
    scope: McpScopeArg,
    /// How to connect (default: http for a URL, else stdio)
    #[arg(long, short)]
    transport: Option<McpTransportArg>,
    /// Environment variable for the program (repeatable)
    #[arg(long, short, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// HTTP header, such as `Name: value` (repeatable)
    #[arg(long, short = 'H', value_name = "HEADER")]
    header: Vec<String>,
}

/// Arguments of `toolgate mcp add-json`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpAddJsonArgs {
    /// Name of the server
    name: String,
    /// Its configuration, such as {"command": "npx", "args": ["-y", "server"]}
    entry: String,
    /// List to add the server to
    #[arg(long, short, default_value = "user")]
    scope: McpScopeArg,
}

/// Arguments of `toolgate mcp remove`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpRemoveArgs {
    /// Name of the server
    name: String,
    /// List to remove it from (default: the first that contains it)
    #[arg(long, short)]
    scope: Option<McpScopeArg>,
}

/// Arguments of `toolgate mcp list`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpListArgs {
    /// Start each server, and show whether it is connected and how many tools it has
    #[arg(long)]
    status: bool,
}

/// Arguments of the commands that take only a name.
#[derive(Debug, clap::Args)]
pub(crate) struct McpNameArgs {
    /// Name of the server
    pub(crate) name: String,
}

/// Builds an entry from the options and adds it.
pub(crate) fn add(
    context: &CliContext,
    args: &McpAddArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let address = args.command.starts_with("http://") || args.command.starts_with("https://");
    let kind = args.transport.unwrap_or(if address { McpTransportArg::Http } else { McpTransportArg::Stdio });
    let entry = match kind {
        McpTransportArg::Stdio => json!({
            "type": "stdio", "command": args.command, "args": args.args, "env": parse_pairs(&args.env, '=')?,
        }),
        McpTransportArg::Http => {
            json!({ "type": "http", "url": args.command, "headers": parse_pairs(&args.header, ':')? })
        }
    };
    put_entry(context, &args.name, &entry, args.scope, out)
}

/// Adds an entry that is given as JSON.
pub(crate) fn add_json(
    context: &CliContext,
    args: &McpAddJsonArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let entry =
        parse(&args.entry, JsonLimits::SETTINGS).map_err(|problem| CliError::Usage(problem.to_string()))?;
    put_entry(context, &args.name, &entry, args.scope, out)
}

/// Validates an entry, writes it to a list and approves it. The order matters: an invalid entry changes no file.
fn put_entry(
    context: &CliContext,
    name: &str,
    entry: &Value,
    scope: McpScopeArg,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let path = server_list_path(context, scope)?;
    let root = toolgate_files::resolve(&context.cwd()).real;
    let file = path.to_string();
    let origin = ServerListOrigin::new(&file, &root, &context.ambient.env).with_trusted(true);
    let mut notes = Vec::new();
    let server = read_server(name, entry, &origin, &mut notes)
        .map_err(|problem| CliError::Usage(describe_invalid_entry(name, &problem, &notes)))?;
    let lock = lock(context, &path)?;
    let mut whole = read(&path)?;
    let servers = whole.entry("mcpServers").or_insert_with(|| json!({}));
    let Some(servers) = servers.as_object_mut() else {
        return Err(CliError::Usage(format!("{path}: `mcpServers` must be an object")));
    };
    let former = servers.insert(name.to_owned(), entry.clone());
    if former.is_some_and(|former| former != *entry) {
        notes.push(format!("this replaces the former entry of `{name}`, with its variables and headers"));
    }
    write(&path, &whole)?;
    drop(lock);
    for note in notes {
        out.print_note(&note);
    }
    note_unknown_keys(server.as_slice(), out);
    // The user who added the server has seen its launch command.
    if let Some(server) = server {
        open_pins(context)?.approve(&pin_key(&server), &server.launch_digest()).map_err(CliError::Usage)?;
    }
    let text = format!("added server `{name}` to {path}; `toolgate mcp test {name}` connects to it");
    out.print_done(context.global.json, &json!({ "server": name, "file": path, "added": true }), &text)?;
    Ok(CliExitCode::Ok)
}

/// Why an entry cannot be used, with the misspelled keys in it, which are the likely cause.
fn describe_invalid_entry(name: &str, problem: &str, notes: &[String]) -> String {
    let mark = format!("server `{name}`: ");
    let keys: Vec<&str> = notes
        .iter()
        .map(|note| note.split_once(mark.as_str()).map_or(note.as_str(), |(_, text)| text))
        .collect();
    let hint = if keys.is_empty() { String::new() } else { format!("\n  hint: {}", keys.join("; ")) };
    format!("{mark}{problem}{hint}")
}

/// Removes an entry and forgets its approval.
pub(crate) fn remove(
    context: &CliContext,
    args: &McpRemoveArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let scopes =
        args.scope.map_or_else(|| vec![McpScopeArg::User, McpScopeArg::Project], |scope| vec![scope]);
    for scope in scopes {
        let path = server_list_path(context, scope)?;
        let _lock = lock(context, &path)?;
        let mut whole = read(&path)?;
        let removed = whole
            .get_mut("mcpServers")
            .and_then(Value::as_object_mut)
            .and_then(|servers| servers.shift_remove(&args.name));
        if removed.is_some() {
            write(&path, &whole)?;
            open_pins(context)?.forget(&format!("{path}#{}", args.name)).map_err(CliError::Usage)?;
            let done = json!({ "server": args.name, "file": path, "removed": true });
            let text = format!("removed server `{}` from {path}", args.name);
            out.print_done(context.global.json, &done, &text)?;
            return Ok(CliExitCode::Ok);
        }
    }
    Err(CliError::Usage(format!(
        "no server `{}` in your list or the project's; `toolgate mcp list` lists the servers",
        args.name
    )))
}

/// Prints the servers of all lists and settings, and marks those that do not start before they are approved. With
/// `--status` each is started, and its state is printed.
pub(crate) fn list(
    context: &CliContext,
    args: &McpListArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let toolgate = context.builder()?.build()?;
    let upstreams = UpstreamServers::discover(context, &toolgate.settings(), out)?;
    let (servers, problems) = (upstreams.servers.clone(), upstreams.problems.clone());
    note_unknown_keys(&servers, out);
    // A script must be able to tell a list that is empty from one that could not be read.
    let exit = if problems.is_empty() { CliExitCode::Ok } else { CliExitCode::ToolFailed };
    let states = if args.status { upstreams.connect_once(context, &toolgate)? } else { Vec::new() };
    let state_of = |server: &ServerEntry| states.iter().find(|state| state.name == server.name);
    if context.global.json {
        let describe = |server: &ServerEntry| -> Result<Value, CliError> {
            let mut value = server_json(context, server)?;
            if let (Value::Object(fields), Some(state)) = (&mut value, state_of(server)) {
                fields.insert("connected".to_owned(), json!(state.era.is_some()));
                fields.insert("tools".to_owned(), json!(state.tools));
                fields.insert("problems".to_owned(), json!(state.problems));
                let error = state.error.as_ref().map(|error| error.refusal(&state.name).reason);
                fields.insert("error".to_owned(), json!(error));
            }
            Ok(value)
        };
        let list: Vec<Value> = servers.iter().map(describe).collect::<Result<_, _>>()?;
        out.print_line(&json!({ "servers": list, "problems": problems }).to_string())?;
        return Ok(exit);
    }
    if servers.is_empty() && problems.is_empty() {
        out.print_line(NO_SERVERS)?;
    }
    let width = servers.iter().map(|server| server.name.len()).max().unwrap_or(0);
    for server in &servers {
        let approval = match open_pins(context)?.check_may_start(
            &pin_key(server),
            &server.launch_digest(),
            server.trusted,
        ) {
            Ok(()) => state_of(server).map(describe_state).unwrap_or_default(),
            Err(_) => {
                let hint = format!("not approved: run `toolgate mcp approve {}`", server.name);
                format!("  {}", paint(style::ASK, &hint))
            }
        };
        let name = paint(style::BOLD, &format!("{:width$}", server.name));
        out.print_line(&format!("{name}  {}{approval}", escape_invisible(&describe_transport(server))))?;
    }
    Ok(exit)
}

/// Prints which keys of the entries have no effect. Not at other commands: a list that is shared with another product keeps
/// its keys.
fn note_unknown_keys(servers: &[ServerEntry], out: &mut CliOutput) {
    for server in servers {
        for key in &server.unknown_keys {
            out.print_note(&format!(
                "{}: server `{}`: `{key}` is not a known key and has no effect",
                server.origin, server.name
            ));
        }
    }
}

/// The state of a server at the end of its line: connected with its tools, or the error.
fn describe_state(state: &ServerState) -> String {
    let text = match &state.error {
        None if state.era.is_some() => {
            let problems = match state.problems.len() {
                0 => String::new(),
                count => format!(", problems: {count} (see `toolgate mcp test {}`)", state.name),
            };
            paint(style::GOOD, &format!("connected, tools: {}{problems}", state.tools.len()))
        }
        None => paint(style::ASK, "still starting"),
        Some(error) => {
            let refusal = error.refusal(&state.name);
            paint(style::BAD, &escape_invisible(&format!("{} ({})", refusal.reason, refusal.hint)))
        }
    };
    format!("  {text}")
}

/// Prints the configuration of one server as JSON.
pub(crate) fn get(context: &CliContext, name: &str, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let toolgate = context.builder()?.build()?;
    let upstreams = UpstreamServers::discover(context, &toolgate.settings(), out)?;
    let value = server_json(context, upstreams.find_server(name)?)?;
    let text = serde_json::to_string_pretty(&value).map_err(|error| CliError::Usage(error.to_string()))?;
    out.print_line(&escape_invisible(&text))?;
    Ok(CliExitCode::Ok)
}

/// The key of an approval: the same name in another file is another server.
pub(super) fn pin_key(server: &ServerEntry) -> String {
    format!("{}#{}", server.origin, server.name)
}

/// The command line or URL of a server. Values of variables and headers are omitted, because they may be secrets.
pub(super) fn describe_transport(server: &ServerEntry) -> String {
    match &server.transport {
        ServerTransport::Stdio(launch) => {
            std::iter::once(&launch.command).chain(&launch.args).cloned().collect::<Vec<_>>().join(" ")
        }
        ServerTransport::Http { url, .. } => url.clone(),
        ServerTransport::Streams(_) => "part of the host program".to_owned(),
    }
}

/// The configuration of a server for `--json`, with the names of variables and headers but not their values.
fn server_json(context: &CliContext, server: &ServerEntry) -> Result<Value, CliError> {
    let not_approved = open_pins(context)?
        .check_may_start(&pin_key(server), &server.launch_digest(), server.trusted)
        .is_err();
    let mut value = json!({
        "name": server.name, "origin": server.origin, "held": not_approved, "alwaysLoad": server.always_load,
        "timeout": u64::try_from(server.call_timeout.as_millis()).unwrap_or(u64::MAX),
    });
    let names = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>();
    let more = match &server.transport {
        ServerTransport::Stdio(launch) => json!({
            "type": "stdio", "command": launch.command, "args": launch.args, "env": names(&launch.env),
            "cwd": launch.cwd,
        }),
        ServerTransport::Http { url, headers } => {
            json!({ "type": "http", "url": url, "headers": names(headers) })
        }
        ServerTransport::Streams(_) => json!({ "type": "sdk" }),
    };
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    Ok(value)
}

/// The file of a list.
fn server_list_path(context: &CliContext, scope: McpScopeArg) -> Result<AbsPath, CliError> {
    match scope {
        McpScopeArg::Project => {
            Ok(toolgate_files::resolve(&context.cwd()).real.join(PROJECT_MCP_SERVERS_FILE))
        }
        McpScopeArg::User => match &context.ambient.config_dir {
            Some(dir) => Ok(dir.join("mcp.json")),
            None => Err(CliError::Usage(
                "there is no home directory that could hold your list; use --scope project".to_owned(),
            )),
        },
    }
}

/// Reads a list; a missing file is an empty one.
fn read(path: &AbsPath) -> Result<Map<String, Value>, CliError> {
    let text = toolgate_files::read_settings_text(path, JsonLimits::SETTINGS.bytes as u64)
        .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?;
    let Some(text) = text else { return Ok(Map::new()) };
    match parse(&text, JsonLimits::SETTINGS) {
        Ok(Value::Object(whole)) => Ok(whole),
        Ok(_) => Err(CliError::Usage(format!("{path}: the file must contain a JSON object"))),
        Err(problem) => {
            Err(CliError::Usage(format!("{path}: {}", describe_damaged_list(&problem.to_string()))))
        }
    }
}

/// Locks the lists against other processes. The lock file is in the state directory: beside the list it would leave a
/// file in the project.
fn lock(context: &CliContext, path: &AbsPath) -> Result<toolgate_files::StateFileLock, CliError> {
    let lock_file = match &context.ambient.state_dir {
        Some(dir) => dir.join("mcp-lists"),
        None => path.clone(),
    };
    toolgate_files::lock_state_file(&lock_file)
        .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))
}

/// Replaces a list.
fn write(path: &AbsPath, whole: &Map<String, Value>) -> Result<(), CliError> {
    let mut text = serde_json::to_string_pretty(whole).map_err(|error| CliError::Usage(error.to_string()))?;
    text.push('\n');
    toolgate_files::write_private_file(path, text.as_bytes())
        .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))
}

/// Parses `NAME=VALUE` or `Name: value`, by the separator.
fn parse_pairs(given: &[String], separator: char) -> Result<BTreeMap<String, String>, CliError> {
    given
        .iter()
        .map(|pair| match pair.split_once(separator) {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok((name.trim().to_owned(), value.trim_start().to_owned()))
            }
            _ => Err(CliError::Usage(format!("invalid `{pair}`; write NAME{separator}VALUE"))),
        })
        .collect()
}
