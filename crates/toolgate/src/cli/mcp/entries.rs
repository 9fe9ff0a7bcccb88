//! `toolgate mcp add`, `add-json`, `remove`, `list`, `get`, `approve`: the entries of servers.

use super::super::out::{Out, paint, style};
use super::super::world::World;
use super::super::{Exit, Failure};
use super::behind::{UpstreamServers, pins};
use clap::ValueEnum;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use toolgate::mcp::client::{Origin, Reach, ServerEntry, read_server};
use toolgate::mcp_servers::PROJECT_SERVERS_FILE;
use toolgate::render::visible;
use toolgate_proto::AbsPath;
use toolgate_proto::json::{Limits, parse};

/// Whose list an entry goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// Yours, for all projects
    User,
    /// The project's, in .mcp.json
    Project,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A program, over its standard streams
    Stdio,
    /// An address
    Http,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    /// The server's name
    name: String,
    /// The program, or the address
    command: String,
    /// The program's arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
    /// Whose list it goes to
    #[arg(long, short, default_value = "user")]
    scope: Scope,
    /// How it is reached; an address is recognised
    #[arg(long, short)]
    transport: Option<Kind>,
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
    scope: Scope,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// The server's name
    name: String,
    /// From whose list; where absent, from the one that has it
    #[arg(long, short)]
    scope: Option<Scope>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct McpNameArgs {
    /// The server's name
    pub(crate) name: String,
}

pub(crate) fn add(world: &World, args: &AddArgs, out: &mut Out) -> Result<Exit, Failure> {
    let address = args.command.starts_with("http://") || args.command.starts_with("https://");
    let kind = args.transport.unwrap_or(if address { Kind::Http } else { Kind::Stdio });
    let entry = match kind {
        Kind::Stdio => json!({
            "type": "stdio", "command": args.command, "args": args.args, "env": pairs(&args.env, '=')?,
        }),
        Kind::Http => json!({ "type": "http", "url": args.command, "headers": pairs(&args.header, ':')? }),
    };
    put(world, &args.name, &entry, args.scope, out)
}

pub(crate) fn add_json(world: &World, args: &McpAddJsonArgs, out: &mut Out) -> Result<Exit, Failure> {
    let entry =
        parse(&args.entry, Limits::SETTINGS).map_err(|problem| Failure::Usage(problem.to_string()))?;
    put(world, &args.name, &entry, args.scope, out)
}

fn put(world: &World, name: &str, entry: &Value, scope: Scope, out: &mut Out) -> Result<Exit, Failure> {
    let path = file_of(world, scope)?;
    let root = toolgate_os::resolve(&world.cwd()).real;
    let file = path.to_string();
    let origin = Origin { file: &file, base: &root, env: &world.ambient.env, trusted: true };
    let mut notes = Vec::new();
    let server = read_server(name, entry, &origin, &mut notes)
        .map_err(|problem| Failure::Usage(format!("server `{name}`: {problem}")))?;
    let lock = lock(world, &path)?;
    let mut whole = read(&path)?;
    let servers = whole.entry("mcpServers").or_insert_with(|| json!({}));
    let Some(servers) = servers.as_object_mut() else {
        return Err(Failure::Usage(format!("{path}: `mcpServers` must be an object")));
    };
    servers.insert(name.to_owned(), entry.clone());
    write(&path, &whole)?;
    drop(lock);
    for note in notes {
        out.note(&note);
    }
    // Whoever adds it has seen it.
    if let Some(server) = server {
        pins(world)?.approve(&key(&server), &server.launch_digest()).map_err(Failure::Usage)?;
    }
    out.line(&format!("added `{name}` to {path}; see `toolgate mcp test {name}`"))?;
    Ok(Exit::Ok)
}

pub(crate) fn remove(world: &World, args: &RemoveArgs, out: &mut Out) -> Result<Exit, Failure> {
    let scopes = args.scope.map_or_else(|| vec![Scope::User, Scope::Project], |scope| vec![scope]);
    for scope in scopes {
        let path = file_of(world, scope)?;
        let _lock = lock(world, &path)?;
        let mut whole = read(&path)?;
        let removed = whole
            .get_mut("mcpServers")
            .and_then(Value::as_object_mut)
            .and_then(|servers| servers.shift_remove(&args.name));
        if removed.is_some() {
            write(&path, &whole)?;
            pins(world)?.forget(&format!("{path}#{}", args.name)).map_err(Failure::Usage)?;
            out.line(&format!("removed `{}` from {path}", args.name))?;
            return Ok(Exit::Ok);
        }
    }
    Err(Failure::Usage(format!("no list of yours has a server `{}`; see `toolgate mcp list`", args.name)))
}

pub(crate) fn list(world: &World, out: &mut Out) -> Result<Exit, Failure> {
    let toolgate = world.builder()?.build()?;
    let behind = UpstreamServers::look(world, &toolgate.settings(), out)?;
    if world.global.json {
        let list: Vec<Value> =
            behind.servers.iter().map(|server| shown(world, server)).collect::<Result<_, _>>()?;
        out.line(&json!({ "servers": list }).to_string())?;
        return Ok(Exit::Ok);
    }
    if behind.servers.is_empty() {
        out.line("no servers; add one with `toolgate mcp add NAME COMMAND`")?;
    }
    let width = behind.servers.iter().map(|server| server.name.len()).max().unwrap_or(0);
    for server in &behind.servers {
        let held = match pins(world)?.check_may_start(&key(server), &server.launch_digest(), server.trusted) {
            Ok(()) => String::new(),
            Err(_) => format!("  {}", paint(style::ASK, "held back: toolgate mcp approve")),
        };
        let name = paint(style::BOLD, &format!("{:width$}", server.name));
        out.line(&format!("{name}  {}{held}", visible(&reached(server))))?;
    }
    Ok(Exit::Ok)
}

pub(crate) fn get(world: &World, name: &str, out: &mut Out) -> Result<Exit, Failure> {
    let toolgate = world.builder()?.build()?;
    let behind = UpstreamServers::look(world, &toolgate.settings(), out)?;
    let value = shown(world, behind.named(name)?)?;
    let text = serde_json::to_string_pretty(&value).map_err(|error| Failure::Usage(error.to_string()))?;
    out.line(&visible(&text))?;
    Ok(Exit::Ok)
}

pub(crate) fn approve(world: &World, name: &str, out: &mut Out) -> Result<Exit, Failure> {
    let toolgate = world.builder()?.build()?;
    let behind = UpstreamServers::look(world, &toolgate.settings(), out)?;
    let server = behind.named(name)?;
    pins(world)?.approve(&key(server), &server.launch_digest()).map_err(Failure::Usage)?;
    out.line(&format!("approved `{name}`: {}", visible(&reached(server))))?;
    Ok(Exit::Ok)
}

fn key(server: &ServerEntry) -> String {
    format!("{}#{}", server.origin, server.name)
}

/// How a server is reached, in one line. Values of variables and headers may be secrets and are not shown.
fn reached(server: &ServerEntry) -> String {
    match &server.reach {
        Reach::Stdio(launch) => {
            std::iter::once(&launch.command).chain(&launch.args).cloned().collect::<Vec<_>>().join(" ")
        }
        Reach::Http { url, .. } => url.clone(),
    }
}

fn shown(world: &World, server: &ServerEntry) -> Result<Value, Failure> {
    let held = pins(world)?.check_may_start(&key(server), &server.launch_digest(), server.trusted).is_err();
    let mut value = json!({
        "name": server.name, "origin": server.origin, "held": held, "alwaysLoad": server.always_load,
        "timeout": u64::try_from(server.call_timeout.as_millis()).unwrap_or(u64::MAX),
    });
    let names = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>();
    let more = match &server.reach {
        Reach::Stdio(launch) => json!({
            "type": "stdio", "command": launch.command, "args": launch.args, "env": names(&launch.env),
            "cwd": launch.cwd,
        }),
        Reach::Http { url, headers } => json!({ "type": "http", "url": url, "headers": names(headers) }),
    };
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    Ok(value)
}

fn file_of(world: &World, scope: Scope) -> Result<AbsPath, Failure> {
    match scope {
        Scope::Project => Ok(toolgate_os::resolve(&world.cwd()).real.join(PROJECT_SERVERS_FILE)),
        Scope::User => match &world.ambient.config_dir {
            Some(dir) => Ok(dir.join("mcp.json")),
            None => Err(Failure::Usage(
                "there is no home directory for your list; use --scope project".to_owned(),
            )),
        },
    }
}

fn read(path: &AbsPath) -> Result<Map<String, Value>, Failure> {
    let text = toolgate_os::read_settings_text(path, Limits::SETTINGS.bytes as u64)
        .map_err(|problem| Failure::Usage(format!("{path}: {problem}")))?;
    let Some(text) = text else { return Ok(Map::new()) };
    match parse(&text, Limits::SETTINGS) {
        Ok(Value::Object(whole)) => Ok(whole),
        Ok(_) => Err(Failure::Usage(format!("{path}: it must be a JSON object"))),
        Err(problem) => Err(Failure::Usage(format!("{path}: {problem}"))),
    }
}

/// Keeps other processes from changing the lists. The lock is beside toolgate's own state, so that it leaves no file in
/// a project.
fn lock(world: &World, path: &AbsPath) -> Result<toolgate_os::OwnLock, Failure> {
    let held = match &world.ambient.state_dir {
        Some(dir) => dir.join("mcp-lists"),
        None => path.clone(),
    };
    toolgate_os::lock_state_file(&held).map_err(|problem| Failure::Usage(format!("{path}: {problem}")))
}

fn write(path: &AbsPath, whole: &Map<String, Value>) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(whole).map_err(|error| Failure::Usage(error.to_string()))?;
    text.push('\n');
    toolgate_os::write_private_file(path, text.as_bytes())
        .map_err(|problem| Failure::Usage(format!("{path}: {problem}")))
}

fn pairs(given: &[String], between: char) -> Result<BTreeMap<String, String>, Failure> {
    given
        .iter()
        .map(|pair| match pair.split_once(between) {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok((name.trim().to_owned(), value.trim_start().to_owned()))
            }
            _ => Err(Failure::Usage(format!("`{pair}` must be NAME{between}VALUE"))),
        })
        .collect()
}
