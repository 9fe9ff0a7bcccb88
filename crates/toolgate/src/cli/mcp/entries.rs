//! `toolgate mcp add`, `add-json`, `remove`, `list`, `get`, `approve`: the entries of servers.

use super::super::context::CliContext;
use super::super::output::{CliOutput, paint, style};
use super::super::{CliError, CliExitCode};
use super::upstreams::{UpstreamServers, open_pins};
use clap::ValueEnum;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use toolgate::mcp::client::{ServerEntry, ServerListOrigin, ServerTransport, read_server};
use toolgate::mcp_servers::PROJECT_SERVERS_FILE;
use toolgate::render::escape_invisible;
use toolgate_proto::AbsPath;
use toolgate_proto::json::{JsonLimits, parse};

/// Whose list an entry goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpScopeArg {
    /// Yours, for all projects
    User,
    /// The project's, in .mcp.json
    Project,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpTransportArg {
    /// A program, over its standard streams
    Stdio,
    /// An address
    Http,
}

#[derive(Debug, clap::Args)]
pub(crate) struct McpAddArgs {
    /// The server's name
    name: String,
    /// The program, or the address
    command: String,
    /// The program's arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
    /// Whose list it goes to
    #[arg(long, short, default_value = "user")]
    scope: McpScopeArg,
    /// How it is reached; an address is recognised
    #[arg(long, short)]
    transport: Option<McpTransportArg>,
    /// A variable for the program, as NAME=VALUE (repeatable)
    #[arg(long, short, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// A header for the address, as `Name: value` (repeatable)
    #[arg(long, short = 'H', value_name = "HEADER")]
    header: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct McpAddJsonArgs {
    /// The server's name
    name: String,
    /// The entry, such as {"command": "npx", "args": ["-y", "server"]}
    entry: String,
    /// Whose list it goes to
    #[arg(long, short, default_value = "user")]
    scope: McpScopeArg,
}

#[derive(Debug, clap::Args)]
pub(crate) struct McpRemoveArgs {
    /// The server's name
    name: String,
    /// From whose list; where absent, from the one that has it
    #[arg(long, short)]
    scope: Option<McpScopeArg>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct McpNameArgs {
    /// The server's name
    pub(crate) name: String,
}

pub(crate) fn add(
    world: &CliContext,
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
    put_entry(world, &args.name, &entry, args.scope, out)
}

pub(crate) fn add_json(
    world: &CliContext,
    args: &McpAddJsonArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let entry =
        parse(&args.entry, JsonLimits::SETTINGS).map_err(|problem| CliError::Usage(problem.to_string()))?;
    put_entry(world, &args.name, &entry, args.scope, out)
}

fn put_entry(
    world: &CliContext,
    name: &str,
    entry: &Value,
    scope: McpScopeArg,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let path = server_list_path(world, scope)?;
    let root = toolgate_files::resolve(&world.cwd()).real;
    let file = path.to_string();
    let origin = ServerListOrigin { file: &file, base: &root, env: &world.ambient.env, trusted: true };
    let mut notes = Vec::new();
    let server = read_server(name, entry, &origin, &mut notes)
        .map_err(|problem| CliError::Usage(format!("server `{name}`: {problem}")))?;
    let lock = lock(world, &path)?;
    let mut whole = read(&path)?;
    let servers = whole.entry("mcpServers").or_insert_with(|| json!({}));
    let Some(servers) = servers.as_object_mut() else {
        return Err(CliError::Usage(format!("{path}: `mcpServers` must be an object")));
    };
    servers.insert(name.to_owned(), entry.clone());
    write(&path, &whole)?;
    drop(lock);
    for note in notes {
        out.print_note(&note);
    }
    // Whoever adds it has seen it.
    if let Some(server) = server {
        open_pins(world)?.approve(&pin_key(&server), &server.launch_digest()).map_err(CliError::Usage)?;
    }
    out.print_line(&format!("added `{name}` to {path}; see `toolgate mcp test {name}`"))?;
    Ok(CliExitCode::Ok)
}

pub(crate) fn remove(
    world: &CliContext,
    args: &McpRemoveArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let scopes =
        args.scope.map_or_else(|| vec![McpScopeArg::User, McpScopeArg::Project], |scope| vec![scope]);
    for scope in scopes {
        let path = server_list_path(world, scope)?;
        let _lock = lock(world, &path)?;
        let mut whole = read(&path)?;
        let removed = whole
            .get_mut("mcpServers")
            .and_then(Value::as_object_mut)
            .and_then(|servers| servers.shift_remove(&args.name));
        if removed.is_some() {
            write(&path, &whole)?;
            open_pins(world)?.forget(&format!("{path}#{}", args.name)).map_err(CliError::Usage)?;
            out.print_line(&format!("removed `{}` from {path}", args.name))?;
            return Ok(CliExitCode::Ok);
        }
    }
    Err(CliError::Usage(format!("no list of yours has a server `{}`; see `toolgate mcp list`", args.name)))
}

pub(crate) fn list(world: &CliContext, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let toolgate = world.builder()?.build()?;
    let behind = UpstreamServers::discover(world, &toolgate.settings(), out)?;
    if world.global.json {
        let list: Vec<Value> =
            behind.servers.iter().map(|server| server_json(world, server)).collect::<Result<_, _>>()?;
        out.print_line(&json!({ "servers": list }).to_string())?;
        return Ok(CliExitCode::Ok);
    }
    if behind.servers.is_empty() {
        out.print_line("no servers; add one with `toolgate mcp add NAME COMMAND`")?;
    }
    let width = behind.servers.iter().map(|server| server.name.len()).max().unwrap_or(0);
    for server in &behind.servers {
        let held = match open_pins(world)?.check_may_start(
            &pin_key(server),
            &server.launch_digest(),
            server.trusted,
        ) {
            Ok(()) => String::new(),
            Err(_) => format!("  {}", paint(style::ASK, "held back: toolgate mcp approve")),
        };
        let name = paint(style::BOLD, &format!("{:width$}", server.name));
        out.print_line(&format!("{name}  {}{held}", escape_invisible(&describe_transport(server))))?;
    }
    Ok(CliExitCode::Ok)
}

pub(crate) fn get(world: &CliContext, name: &str, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let toolgate = world.builder()?.build()?;
    let behind = UpstreamServers::discover(world, &toolgate.settings(), out)?;
    let value = server_json(world, behind.find_server(name)?)?;
    let text = serde_json::to_string_pretty(&value).map_err(|error| CliError::Usage(error.to_string()))?;
    out.print_line(&escape_invisible(&text))?;
    Ok(CliExitCode::Ok)
}

pub(crate) fn approve(world: &CliContext, name: &str, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let toolgate = world.builder()?.build()?;
    let behind = UpstreamServers::discover(world, &toolgate.settings(), out)?;
    let server = behind.find_server(name)?;
    open_pins(world)?.approve(&pin_key(server), &server.launch_digest()).map_err(CliError::Usage)?;
    out.print_line(&format!("approved `{name}`: {}", escape_invisible(&describe_transport(server))))?;
    Ok(CliExitCode::Ok)
}

fn pin_key(server: &ServerEntry) -> String {
    format!("{}#{}", server.origin, server.name)
}

/// How a server is reached, in one line. Values of variables and headers may be secrets and are not shown.
fn describe_transport(server: &ServerEntry) -> String {
    match &server.transport {
        ServerTransport::Stdio(launch) => {
            std::iter::once(&launch.command).chain(&launch.args).cloned().collect::<Vec<_>>().join(" ")
        }
        ServerTransport::Http { url, .. } => url.clone(),
    }
}

fn server_json(world: &CliContext, server: &ServerEntry) -> Result<Value, CliError> {
    let held =
        open_pins(world)?.check_may_start(&pin_key(server), &server.launch_digest(), server.trusted).is_err();
    let mut value = json!({
        "name": server.name, "origin": server.origin, "held": held, "alwaysLoad": server.always_load,
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
    };
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    Ok(value)
}

fn server_list_path(world: &CliContext, scope: McpScopeArg) -> Result<AbsPath, CliError> {
    match scope {
        McpScopeArg::Project => Ok(toolgate_files::resolve(&world.cwd()).real.join(PROJECT_SERVERS_FILE)),
        McpScopeArg::User => match &world.ambient.config_dir {
            Some(dir) => Ok(dir.join("mcp.json")),
            None => Err(CliError::Usage(
                "there is no home directory for your list; use --scope project".to_owned(),
            )),
        },
    }
}

fn read(path: &AbsPath) -> Result<Map<String, Value>, CliError> {
    let text = toolgate_files::read_settings_text(path, JsonLimits::SETTINGS.bytes as u64)
        .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?;
    let Some(text) = text else { return Ok(Map::new()) };
    match parse(&text, JsonLimits::SETTINGS) {
        Ok(Value::Object(whole)) => Ok(whole),
        Ok(_) => Err(CliError::Usage(format!("{path}: it must be a JSON object"))),
        Err(problem) => Err(CliError::Usage(format!("{path}: {problem}"))),
    }
}

/// Keeps other processes from changing the lists. The lock is beside toolgate's own state, so that it leaves no file in
/// a project.
fn lock(world: &CliContext, path: &AbsPath) -> Result<toolgate_files::StateFileLock, CliError> {
    let held = match &world.ambient.state_dir {
        Some(dir) => dir.join("mcp-lists"),
        None => path.clone(),
    };
    toolgate_files::lock_state_file(&held).map_err(|problem| CliError::Usage(format!("{path}: {problem}")))
}

fn write(path: &AbsPath, whole: &Map<String, Value>) -> Result<(), CliError> {
    let mut text = serde_json::to_string_pretty(whole).map_err(|error| CliError::Usage(error.to_string()))?;
    text.push('\n');
    toolgate_files::write_private_file(path, text.as_bytes())
        .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))
}

fn parse_pairs(given: &[String], between: char) -> Result<BTreeMap<String, String>, CliError> {
    given
        .iter()
        .map(|pair| match pair.split_once(between) {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok((name.trim().to_owned(), value.trim_start().to_owned()))
            }
            _ => Err(CliError::Usage(format!("`{pair}` must be NAME{between}VALUE"))),
        })
        .collect()
}
