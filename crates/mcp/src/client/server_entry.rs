//! The configuration of servers, from `.mcp.json` and settings.
//!
//! The format is the one that other clients use (`mcpServers`), so that their files work here.
//! An invalid entry is reported as a problem and does not affect the other servers.

use super::approved_launch::{approved_address, approved_launch};
use super::tool_filter::find_unusable_name;
use super::unread_keys::UnreadKeys;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use toolgate_gate::ledger::sha256_hex;
use toolgate_process::{ByteSink, ByteSource, ServerLaunch};
use toolgate_proto::AbsPath;

/// How long a server may take to start, unless its entry says otherwise.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout of a call, unless the server's entry says otherwise.
pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(300);

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerTransport {
    /// A local process, over its standard streams.
    Stdio(ServerLaunch),
    /// A remote server, over HTTP.
    Http {
        /// Its address.
        url: String,
        /// Headers sent with every request.
        headers: BTreeMap<String, String>,
    },
    /// A server inside the program around us, over streams that it opens.
    Streams(StreamOpener),
}

/// Opens the byte streams to a server, each time it is connected.
#[derive(Clone)]
pub struct StreamOpener(Arc<dyn Fn() -> (ByteSource, ByteSink) + Send + Sync>);

impl StreamOpener {
    /// An opener that calls this function.
    pub fn new(open: impl Fn() -> (ByteSource, ByteSink) + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }

    /// Opens a new pair of streams; called again after each lost connection.
    pub(crate) fn open(&self) -> (ByteSource, ByteSink) {
        (self.0)()
    }
}

impl std::fmt::Debug for StreamOpener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamOpener")
    }
}

impl PartialEq for StreamOpener {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for StreamOpener {}

/// OAuth settings of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OauthHints {
    /// The client id that is registered there.
    pub client_id: Option<String>,
    /// The client secret that goes with it.
    pub client_secret: Option<String>,
    /// The OAuth scopes to request.
    pub scopes: Vec<String>,
    /// The port of the redirect URI.
    pub callback_port: Option<u16>,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerEntry {
    /// Its name, fit to be part of a tool's name.
    pub name: String,
    /// How it is reached.
    pub transport: ServerTransport,
    /// How long it may take to start.
    pub connect_timeout: Duration,
    /// How long a call may take.
    pub call_timeout: Duration,
    /// The first call waits for it.
    pub always_load: bool,
    /// Only these of its tools.
    pub include: Option<Vec<String>>,
    /// Not these of its tools.
    pub exclude: Vec<String>,
    /// Whether it gets the workspace roots. Some servers use them instead of their arguments,
    /// so each entry chooses.
    pub roots: bool,
    /// How to sign in to it.
    pub oauth: OauthHints,
    /// The file that names it.
    pub origin: String,
    /// The user configured it, not a project: it may be started without approval.
    pub trusted: bool,
    /// What an approval binds: the entry as it is written, without the values of credentials.
    pub approved: Value,
    /// Keys of the entry that toolgate does not know, such as those of other products. They have no effect.
    pub unknown_keys: Vec<String>,
}

impl ServerEntry {
    /// A digest of what an approval binds, such as the command: a change makes it another server.
    pub fn launch_digest(&self) -> String {
        sha256_hex(self.approved.to_string().as_bytes())
    }

    /// A server inside the program around us. It is part of that program, so it is trusted, and the first call waits for
    /// it.
    pub fn in_process(name: &str, opener: StreamOpener) -> Result<Self, String> {
        check_server_name(name)?;
        Ok(Self {
            name: name.to_owned(),
            transport: ServerTransport::Streams(opener),
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            call_timeout: DEFAULT_CALL_TIMEOUT,
            always_load: true,
            include: None,
            exclude: Vec::new(),
            roots: false,
            oauth: OauthHints::default(),
            origin: "the host program".to_owned(),
            trusted: true,
            approved: serde_json::json!(["streams", name]),
            unknown_keys: Vec::new(),
        })
    }

    /// Whether one of its tools is wanted.
    pub fn includes_tool(&self, tool: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == tool);
        self.include.as_deref().is_none_or(named) && !named(&self.exclude)
    }
}

/// Where a list of servers was found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerListOrigin<'a> {
    /// The file, for messages.
    pub file: &'a str,
    /// Where programs start, and what relative directories are seen from.
    pub base: &'a AbsPath,
    /// The environment, for `${VAR}`.
    pub env: &'a BTreeMap<String, String>,
    /// Whether the user named these servers.
    pub trusted: bool,
}

impl<'a> ServerListOrigin<'a> {
    /// Creates the origin of a list that is not trusted.
    pub fn new(file: &'a str, base: &'a AbsPath, env: &'a BTreeMap<String, String>) -> Self {
        Self { file, base, env, trusted: false }
    }

    /// Says whether the list is trusted.
    pub fn with_trusted(mut self, trusted: bool) -> Self {
        self.trusted = trusted;
        self
    }
}

/// Reads an `mcpServers` object. Gives the servers that can be used, and what is wrong with the others.
pub fn read_servers(value: &Value, origin: &ServerListOrigin<'_>) -> (Vec<ServerEntry>, Vec<String>) {
    let mut problems = Vec::new();
    let Some(entries) = value.as_object() else {
        return (Vec::new(), vec![format!("{}: `mcpServers` must be an object", origin.file)]);
    };
    let mut servers: Vec<ServerEntry> = Vec::new();
    for (name, entry) in entries {
        match read_server(name, entry, origin, &mut problems) {
            Ok(Some(server)) => {
                match servers.iter().find(|other| are_confusable_names(&other.name, &server.name)) {
                    Some(other) => problems.push(format!(
                        "{}: server `{name}` is too easily taken for `{}`; rename one",
                        origin.file, other.name
                    )),
                    None => servers.push(server),
                }
            }
            Ok(None) => {}
            Err(problem) => problems.push(format!("{}: server `{name}`: {problem}", origin.file)),
        }
    }
    (servers, problems)
}

/// Reads one entry. None where it is switched off.
pub fn read_server(
    name: &str,
    entry: &Value,
    origin: &ServerListOrigin<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<ServerEntry>, String> {
    check_server_name(name)?;
    let Some(entry) = entry.as_object() else { return Err("must be an object".to_owned()) };
    let mut reader = ServerEntryReader { name, entry, origin, notes };
    // Other products write `enabled`. If the two disagree, the server stays off.
    let is_enabled = entry.get("enabled").is_none_or(Value::is_null) || reader.flag("enabled")?;
    if reader.flag("disabled")? || !is_enabled {
        return Ok(None);
    }
    // A server inside a host program: that program brings it itself.
    if entry.get("type").and_then(Value::as_str) == Some("sdk") {
        return Ok(None);
    }
    let unread = UnreadKeys::find(entry)?;
    for misspelled in unread.misspelled {
        reader.note(&misspelled);
    }
    let reach = reader.transport()?;
    let approved = match &reach {
        ServerTransport::Stdio(launch) => approved_launch(entry, launch),
        ServerTransport::Http { .. } => approved_address(entry),
        ServerTransport::Streams(_) => serde_json::json!(["streams", name]),
    };
    let oauth = reader.oauth()?;
    let millis = |key: &str| reader.duration(key);
    Ok(Some(ServerEntry {
        name: name.to_owned(),
        transport: reach,
        connect_timeout: millis("connectTimeout")?.unwrap_or(DEFAULT_CONNECT_TIMEOUT),
        call_timeout: millis("timeout")?.unwrap_or(DEFAULT_CALL_TIMEOUT),
        always_load: reader.flag("alwaysLoad")?,
        include: reader.tool_names("includeTools")?,
        exclude: reader.tool_names("excludeTools")?.unwrap_or_default(),
        roots: reader.flag("roots")?,
        oauth,
        origin: origin.file.to_owned(),
        trusted: origin.trusted,
        approved,
        unknown_keys: unread.unknown,
    }))
}

/// A server's name becomes part of `mcp__server__tool`, so that must be readable in one way only.
pub fn check_server_name(name: &str) -> Result<(), String> {
    let fits = !name.is_empty()
        && name.len() <= 60
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && !name.contains("__")
        && !name.starts_with('_')
        && !name.ends_with('_');
    if fits {
        return Ok(());
    }
    Err("a name has 1 to 60 letters, digits, `-` and single `_` inside".to_owned())
}

/// Whether two names could be taken for one another.
pub fn are_confusable_names(a: &str, b: &str) -> bool {
    confusable_skeleton(a) == confusable_skeleton(b)
}

/// The name with look-alike characters folded, for comparing.
pub(crate) fn confusable_skeleton(name: &str) -> String {
    name.chars()
        .flat_map(char::to_lowercase)
        .map(|c| match c {
            '-' => '_',
            '0' => 'o',
            '1' | 'i' => 'l',
            other => other,
        })
        .collect()
}

/// A reader of the fields of one entry, with type checks and expansion of variables.
struct ServerEntryReader<'a> {
    /// The name of the server, for notes.
    name: &'a str,
    /// The JSON object that is read.
    entry: &'a Map<String, Value>,
    /// The file and environment of the entry.
    origin: &'a ServerListOrigin<'a>,
    /// The collected warnings, which do not make the entry unusable.
    notes: &'a mut Vec<String>,
}

impl ServerEntryReader<'_> {
    /// How the server is reached.
    fn transport(&mut self) -> Result<ServerTransport, String> {
        let url = self.text("url")?.or(self.text("httpUrl")?);
        let kind = self.text("type")?;
        match (kind.as_deref(), url) {
            (None | Some("http" | "streamable-http" | "streamableHttp"), Some(url)) => {
                let usable = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
                if !usable {
                    return Err(format!("`url` must start with http:// or https://, got `{url}`"));
                }
                Ok(ServerTransport::Http { url, headers: self.text_map("headers")? })
            }
            (None | Some("stdio"), None) => {
                let command = self.text("command")?.ok_or("needs a `command` or a `url`")?;
                let base = self.origin.base;
                let cwd = self.text("cwd")?.map_or_else(|| base.clone(), |cwd| base.join(cwd));
                let args = self.text_list("args")?.unwrap_or_default();
                let launch = ServerLaunch::new(command, args, cwd).with_env(self.text_map("env")?);
                Ok(ServerTransport::Stdio(launch))
            }
            (Some(kind @ ("sse" | "ws")), _) => {
                Err(format!("the transport `{kind}` is not spoken any more; use http or stdio"))
            }
            (Some(kind), _) => Err(format!("`type` {kind:?} does not fit; use stdio or http")),
        }
    }

    /// Reads an optional switch. Any other value is rejected: `"disabled": "true"` must not start the server.
    fn flag(&self, key: &str) -> Result<bool, String> {
        match self.entry.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(is_on)) => Ok(*is_on),
            Some(_) => Err(format!("`{key}` must be true or false")),
        }
    }

    /// Reads an optional string; `null` counts as absent.
    fn text(&mut self, key: &str) -> Result<Option<String>, String> {
        match self.entry.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(self.expand(text))),
            Some(_) => Err(format!("`{key}` must be a string")),
        }
    }

    /// Reads an optional list of strings. An absent list differs from an empty one for `includeTools`.
    fn text_list(&mut self, key: &str) -> Result<Option<Vec<String>>, String> {
        let Some(value) = self.entry.get(key) else { return Ok(None) };
        let items = value.as_array().ok_or_else(|| format!("`{key}` must be a list of strings"))?;
        let texts: Option<Vec<String>> =
            items.iter().map(|item| item.as_str().map(|text| self.expand(text))).collect();
        texts.map(Some).ok_or_else(|| format!("`{key}` must be a list of strings"))
    }

    /// Reads an optional list of names of the server's tools, which can be written as in rules: `mcp__server__tool`.
    fn tool_names(&mut self, key: &str) -> Result<Option<Vec<String>>, String> {
        let Some(mut names) = self.text_list(key)? else { return Ok(None) };
        let server = format!("mcp__{}", self.name);
        for name in &mut names {
            if let Some(tool) = name.strip_prefix(&server).and_then(|rest| rest.strip_prefix("__")) {
                *name = tool.to_owned();
            }
            // No tool has such a name, so the list would exclude nothing.
            if let Some(fix) = find_unusable_name(name, self.name) {
                return Err(format!("`{key}` takes names of tools, not `{name}`; {fix}"));
            }
        }
        Ok(Some(names))
    }

    /// Reads an object of strings; empty if absent.
    fn text_map(&mut self, key: &str) -> Result<BTreeMap<String, String>, String> {
        let Some(value) = self.entry.get(key) else { return Ok(BTreeMap::new()) };
        let wrong = || format!("`{key}` must be an object of strings");
        let mut texts = BTreeMap::new();
        for (name, value) in value.as_object().ok_or_else(wrong)? {
            texts.insert(name.clone(), self.expand(value.as_str().ok_or_else(wrong)?));
        }
        Ok(texts)
    }

    /// Reads a time in milliseconds. Zero is rejected: it would make every attempt time out.
    fn duration(&self, key: &str) -> Result<Option<Duration>, String> {
        match self.entry.get(key) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(millis) if millis > 0 => Ok(Some(Duration::from_millis(millis))),
                _ => Err(format!("`{key}` must be a number of milliseconds")),
            },
        }
    }

    /// Reads the `oauth` object, with the same expansion of variables, so that a secret can stay in the environment.
    fn oauth(&mut self) -> Result<OauthHints, String> {
        let Some(value) = self.entry.get("oauth") else { return Ok(OauthHints::default()) };
        let entry = value.as_object().ok_or("`oauth` must be an object")?;
        let mut inner =
            ServerEntryReader { name: self.name, entry, origin: self.origin, notes: &mut *self.notes };
        let scopes = match entry.get("scopes") {
            // One string with blanks is how the protocol itself writes them.
            Some(Value::String(text)) => text.split_whitespace().map(str::to_owned).collect(),
            _ => inner.text_list("scopes")?.unwrap_or_default(),
        };
        Ok(OauthHints {
            client_id: inner.text("clientId")?,
            client_secret: inner.text("clientSecret")?,
            scopes,
            callback_port: entry
                .get("callbackPort")
                .and_then(Value::as_u64)
                .and_then(|port| u16::try_from(port).ok()),
        })
    }

    /// Expands variables in one string, and notes each that is not set.
    fn expand(&mut self, text: &str) -> String {
        let (expanded, unset) = expand_variables(text, self.origin.env);
        for variable in unset {
            self.note(&format!("the variable `{variable}` is not set and has no default"));
        }
        expanded
    }

    /// Adds a warning about the entry.
    fn note(&mut self, message: &str) {
        self.notes.push(format!("{}: server `{}`: {message}", self.origin.file, self.name));
    }
}

/// Fills in `${VAR}` and `${VAR:-default}`. What is not set stays as it is, and is named.
pub(crate) fn expand_variables(text: &str, env: &BTreeMap<String, String>) -> (String, Vec<String>) {
    let mut out = String::new();
    let mut unset = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inside, after)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        match (env.get(name).filter(|value| !(value.is_empty() && default.is_some())), default) {
            (Some(value), _) => out.push_str(value),
            (None, Some(default)) => out.push_str(default),
            (None, None) => {
                out.push_str(&format!("${{{inside}}}"));
                unset.push(name.to_owned());
            }
        }
        rest = after;
    }
    out.push_str(rest);
    (out, unset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn variables_are_filled_in() {
        let env = BTreeMap::from([("A".to_owned(), "x".to_owned()), ("EMPTY".to_owned(), String::new())]);
        for (text, expected, unset) in [
            ("plain", "plain", 0),
            ("${A}/${A:-y}", "x/x", 0),
            ("${B:-y}${B:-}", "y", 0),
            ("${EMPTY:-d}${EMPTY}", "d", 0),
            ("${B}", "${B}", 1),
            ("$A ${A", "$A ${A", 0),
            ("${A:-${B}}", "x}", 0),
        ] {
            let (got, missing) = expand_variables(text, &env);
            assert_eq!((got.as_str(), missing.len()), (expected, unset), "{text}");
        }
    }

    fn check(entry: Value) -> Result<Option<ServerEntry>, String> {
        let env = BTreeMap::new();
        let base = AbsPath::root();
        let origin = ServerListOrigin { file: ".mcp.json", base: &base, env: &env, trusted: false };
        read_server("srv", &entry, &origin, &mut Vec::new())
    }

    #[test]
    fn an_entry_is_read_or_refused_with_words() {
        let entry = json!({ "command": "npx", "args": ["-y", "x"], "env": { "K": "v" }, "timeout": 5000 });
        let server = check(entry).unwrap().unwrap();
        assert!(matches!(&server.transport, ServerTransport::Stdio(launch) if launch.args == ["-y", "x"]));
        assert_eq!(server.call_timeout, Duration::from_secs(5));
        assert!(matches!(check(json!({ "disabled": true })), Ok(None)));
        assert!(matches!(
            check(json!({ "type": "http", "url": "https://x" })).unwrap().unwrap().transport,
            ServerTransport::Http { .. }
        ));
        for (entry, says) in [
            (json!([]), "must be an object"),
            (json!({}), "needs a `command`"),
            (json!({ "command": 3 }), "must be a string"),
            (json!({ "command": "x", "args": "y" }), "list of strings"),
            (json!({ "command": "x", "timeout": -1 }), "milliseconds"),
            (json!({ "url": "file:///etc/passwd" }), "must start with http"),
            (json!({ "type": "sse", "url": "https://x" }), "not spoken"),
            (json!({ "type": "http", "command": "x" }), "does not fit"),
            (json!({ "command": "x", "disabled": "true" }), "`disabled` must be true or false"),
            (json!({ "command": "x", "excludeTools": "y" }), "list of strings"),
        ] {
            let problem = check(entry.clone()).unwrap_err();
            assert!(problem.contains(says), "{entry}: {problem}");
        }
    }

    #[test]
    fn a_server_is_off_if_either_key_says_so() {
        for (keys, is_on) in [
            (json!({ "enabled": false }), false),
            (json!({ "enabled": true }), true),
            (json!({ "enabled": null }), true),
            (json!({ "enabled": true, "disabled": true }), false),
            (json!({ "enabled": false, "disabled": false }), false),
        ] {
            let mut entry = keys.clone();
            entry["command"] = json!("x");
            let server = check(entry).unwrap();
            assert_eq!(server.is_some(), is_on, "{keys}");
            assert!(server.is_none_or(|server| server.unknown_keys.is_empty()), "{keys}");
        }
        let problem = check(json!({ "command": "x", "enabled": "no" })).unwrap_err();
        assert!(problem.contains("`enabled` must be true or false"), "{problem}");
    }

    #[test]
    fn tools_in_lists_can_be_named_as_in_rules() {
        let names = json!(["mcp__srv__post", "get", "db.query", "repos/list", "größe"]);
        let entry = json!({ "command": "x", "excludeTools": names, "includeTools": names });
        let server = check(entry).unwrap().unwrap();
        assert_eq!(server.exclude, ["post", "get", "db.query", "repos/list", "größe"]);
        assert_eq!(server.include.as_ref(), Some(&server.exclude));
        for name in ["mcp__srv", "mcp__srv__*", "*", "po*"] {
            let problem = check(json!({ "command": "x", "excludeTools": [name] })).unwrap_err();
            let written = name.strip_prefix("mcp__srv__").unwrap_or(name);
            assert!(problem.contains(&format!("names of tools, not `{written}`")), "{problem}");
        }
    }

    #[test]
    fn a_name_that_no_tool_can_have_makes_the_entry_unusable() {
        for (name, fix) in [
            ("write_file,delete", "write one entry for each tool: `[\"write_file\", \"delete\"]`"),
            ("write_file, delete", "one entry for each tool"),
            ("write_file|delete", "one entry for each tool"),
            ("write_file delete", "one entry for each tool"),
            ("write_.+", "a deny rule can have a pattern"),
            ("write_?", "a deny rule can have a pattern"),
            ("^write_file$", "a deny rule can have a pattern"),
            ("(write|delete)_file", "a deny rule can have a pattern"),
            ("write_file(path:x)", "a deny rule can have a pattern"),
            ("srv__write_file", "write `write_file`, or `mcp__srv__write_file`"),
            ("mcp__Srv__write_file", "write `write_file`, or `mcp__srv__write_file`"),
            ("mcp__other__post", "if that is a tool of this server"),
            ("srv:write_file", "such as `write_file`"),
            (" write_file", "write `write_file`"),
            ("mcp__Srv", "`disabled` is for the whole server"),
            ("", "write the name of a tool"),
        ] {
            for key in ["excludeTools", "includeTools"] {
                let problem = check(json!({ "command": "x", (key): [name] })).unwrap_err();
                let start = format!("`{key}` takes names of tools, not `{name}`; ");
                assert!(problem.starts_with(&start) && problem.contains(fix), "{problem}");
            }
        }
    }

    #[test]
    fn confusable_names_are_refused() {
        let env = BTreeMap::new();
        let base = AbsPath::root();
        let origin = ServerListOrigin { file: "f", base: &base, env: &env, trusted: true };
        let value = json!({ "files": { "command": "a" }, "Fi1es": { "command": "b" }, "a__b": { "command": "c" },
            "_x": { "command": "d" }, "x y": { "command": "e" } });
        let (servers, problems) = read_servers(&value, &origin);
        assert_eq!(servers.len(), 1);
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert!(problems[0].contains("taken for `files`"), "{problems:?}");
    }

    #[test]
    fn another_command_is_another_server() {
        let one = check(json!({ "command": "a" })).unwrap().unwrap();
        let other = check(json!({ "command": "a", "args": ["--evil"] })).unwrap().unwrap();
        assert_ne!(one.launch_digest(), other.launch_digest());
    }
}
