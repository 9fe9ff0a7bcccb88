//! `--ide`: the editor that has this workspace open, found by the lock file with which it announces itself.

use super::super::CliError;
use super::super::context::CliContext;
use serde::Deserialize;
use toolgate::AbsPath;
use toolgate::mcp::client::{CoordinatorOptions, McpCoordinator, PinStore, ServerEntry, StreamOpener};
use toolgate_files::{FileStamp, list_names_with_suffix, read_file_stamp, read_named_bytes};

/// The largest lock file that is read.
const MAX_LOCK_BYTES: u64 = 64 * 1024;
/// The header with the token, as editors expect it.
const TOKEN_HEADER: &str = "x-claude-code-ide-authorization";
/// The name of the server, which its tools carry: `mcp__ide__…`.
const SERVER_NAME: &str = "ide";

/// What an editor announces.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EditorLock {
    /// The directories that it has open.
    #[serde(default)]
    workspace_folders: Vec<String>,
    /// How it is reached; only `ws` is known.
    #[serde(default)]
    transport: Option<String>,
    /// What we must show to it: another program on the port does not know it.
    #[serde(default)]
    auth_token: Option<String>,
}

/// The editor that has the workspace open.
struct FoundEditor {
    port: u16,
    token: String,
}

/// The editor's tools, as a source like any other MCP server.
pub(super) fn connect_editor(context: &CliContext) -> Result<McpCoordinator, CliError> {
    let editor = find_editor(context)?;
    let opener = StreamOpener::new(move || {
        let headers =
            vec![(TOKEN_HEADER, editor.token.clone()), ("sec-websocket-protocol", "mcp".to_owned())];
        let (reader, writer) = tokio::io::split(toolgate_net::open_local_socket(editor.port, headers));
        (Box::pin(reader), Box::pin(writer))
    });
    let entry = ServerEntry::in_process(SERVER_NAME, opener).map_err(CliError::Usage)?;
    let options =
        CoordinatorOptions::new(PinStore::open(None).map_err(CliError::Usage)?).without_resource_tools();
    Ok(McpCoordinator::new(vec![entry], options))
}

/// Finds the editor: the newest lock file whose workspace contains ours.
fn find_editor(context: &CliContext) -> Result<FoundEditor, CliError> {
    let named = context.ambient.env.get("CLAUDE_CONFIG_DIR").and_then(|dir| AbsPath::new(dir).ok());
    let dir = named.or_else(|| context.ambient.home.as_ref().map(|home| home.join(".claude")));
    let dir = dir.ok_or_else(|| CliError::Usage("--ide: there is no home directory".to_owned()))?.join("ide");
    let cwd = toolgate_files::resolve(&context.cwd()).real;
    let names = list_names_with_suffix(&dir, ".lock")
        .map_err(|problem| CliError::Usage(format!("--ide: `{dir}`: {problem}")))?;
    let found = names.iter().filter_map(|name| {
        let path = dir.join(name);
        let port = name.strip_suffix(".lock")?.parse().ok()?;
        let FileStamp::Present { modified, .. } = read_file_stamp(&path) else { return None };
        let bytes = read_named_bytes(&path, MAX_LOCK_BYTES).ok()?;
        Some((modified, FoundEditor { port, token: read_lock(&bytes, &cwd)? }))
    });
    let newest = found.max_by_key(|(modified, _)| *modified);
    newest.map(|(_, editor)| editor).ok_or_else(|| {
        CliError::Usage(format!(
            "--ide: no editor that has `{cwd}` open announces itself in `{dir}`; open the directory in the editor, with its \
             extension for agents"
        ))
    })
}

/// The token of a lock file, if its editor has the directory open and can be reached.
fn read_lock(bytes: &[u8], cwd: &AbsPath) -> Option<String> {
    let lock: EditorLock = serde_json::from_slice(bytes).ok()?;
    let contains = |folder: &String| {
        AbsPath::new(folder).is_ok_and(|folder| cwd.is_under(&toolgate_files::resolve(&folder).real))
    };
    let is_known = lock.transport.as_deref().is_none_or(|transport| transport == "ws");
    let is_ours = is_known && lock.workspace_folders.iter().any(contains);
    lock.auth_token.filter(|token| is_ours && !token.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_an_editor_with_this_workspace_and_a_token_counts() {
        let cwd = AbsPath::root().join("w/project/sub");
        for (lock, wanted) in [
            (json!({ "workspaceFolders": ["/w/project"], "transport": "ws", "authToken": "t" }), Some("t")),
            (json!({ "workspaceFolders": ["/x", "/w/project/sub"], "authToken": "t" }), Some("t")),
            (json!({ "workspaceFolders": ["/w/proj"], "authToken": "t" }), None),
            (json!({ "workspaceFolders": [], "authToken": "t" }), None),
            (json!({ "workspaceFolders": ["/w/project"], "authToken": " " }), None),
            (json!({ "workspaceFolders": ["/w/project"] }), None),
            (json!({ "workspaceFolders": ["/w/project"], "transport": "pipe", "authToken": "t" }), None),
            (json!([]), None),
        ] {
            assert_eq!(read_lock(lock.to_string().as_bytes(), &cwd).as_deref(), wanted, "{lock}");
        }
    }
}
