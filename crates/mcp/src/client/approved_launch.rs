//! What an approval of a server binds: the entry as the user read it.
//!
//! A server of the user's works in every project, so the directory that it starts in is not bound, and a token may be
//! renewed, so its value is not bound.
//! Variables are bound as they are written (`${TOKEN}`), not as they are filled in.
//!
//! The directory is bound where a file of it could be executed: `node server.js` was approved for one project's
//! `server.js`, and another project can bring another one.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use toolgate_files::resolve;
use toolgate_process::ServerLaunch;
use toolgate_proto::{AbsPath, EntryKind};

/// Parts of the names of variables whose values are credentials. Such a value selects no code, so it may change.
const CREDENTIAL_NAME_PARTS: &[&str] =
    &["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "ACCESS_KEY", "CREDENTIAL"];

/// The parts of an entry that an approval binds, as they are written.
pub(crate) fn approved_launch(entry: &Map<String, Value>, launch: &ServerLaunch) -> Value {
    let env: BTreeMap<String, Value> = entry
        .get("env")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let value = if is_credential_name(name) { Value::Null } else { value.clone() };
            (name.clone(), value)
        })
        .collect();
    let dir = can_run_files_of_directory(launch).then_some(&launch.cwd);
    json!([entry.get("command"), entry.get("args"), env, entry.get("cwd"), dir])
}

/// The same for a server on the network: its address, and which headers it gets.
pub(crate) fn approved_address(entry: &Map<String, Value>) -> Value {
    let headers: BTreeSet<&String> =
        entry.get("headers").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name).collect();
    json!([entry.get("url").or_else(|| entry.get("httpUrl")), headers])
}

/// Whether the value of a variable is a credential by its name.
fn is_credential_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    CREDENTIAL_NAME_PARTS.iter().any(|part| name.contains(part))
}

/// Whether the directory that a server starts in has a file that the launch would execute: a program or a script by a
/// relative path, a module of `python -m`, a package of `npx`.
fn can_run_files_of_directory(launch: &ServerLaunch) -> bool {
    let words = std::iter::once(&launch.command).chain(&launch.args);
    words.enumerate().any(|(at, word)| {
        if at == 0 && !word.contains('/') {
            return false;
        }
        // The value of `--require=./hook.js` is a path as well.
        let value = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
        candidates(value).iter().any(|path| is_file(&launch.cwd.join(path)))
    })
}

/// The files that a word could stand for, relative to the directory.
fn candidates(word: &str) -> Vec<String> {
    if word.is_empty() || word.starts_with('/') {
        return Vec::new();
    }
    let mut paths = vec![word.to_owned(), format!("{word}.js"), format!("{word}.py")];
    let module = word.replace('.', "/");
    let first = module.split('/').next().unwrap_or_default().to_owned();
    paths.extend([
        format!("{first}.py"),
        format!("{first}/__init__.py"),
        format!("{module}.py"),
        format!("{module}/__main__.py"),
    ]);
    // `@scope/name@1.2` is the package `@scope/name` with a program `name`.
    let version_at = word.rfind('@').filter(|at| *at > 0);
    let package = version_at.and_then(|at| word.get(..at)).unwrap_or(word);
    let program = package.rsplit('/').next().unwrap_or(package);
    paths.extend([format!("node_modules/.bin/{program}"), format!("node_modules/{package}/package.json")]);
    paths
}

/// Whether there is something at a path that is not a directory. A path that cannot be resolved counts, because what is
/// there is not known.
fn is_file(path: &AbsPath) -> bool {
    let fact = resolve(path);
    fact.problem.is_some() || matches!(fact.kind, EntryKind::File | EntryKind::Special)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    /// What an approval binds of an entry that starts in this directory.
    fn bound(entry: &Value, dir: &AbsPath) -> Value {
        let entry = entry.as_object().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let args = entry["args"].as_array().unwrap().iter().map(text).collect();
        let launch = ServerLaunch::new(text(&entry["command"]), args, dir.clone());
        approved_launch(entry, &launch)
    }

    fn entry(command: &str, args: &[&str]) -> Value {
        json!({ "command": command, "args": args })
    }

    #[test]
    fn the_directory_and_the_value_of_a_token_are_not_bound() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let [here, there] = [here.path(), there.path()].map(|dir| AbsPath::new(dir).unwrap());
        let mut one = entry("npx", &["-y", "@scope/server@1", "."]);
        one["env"] = json!({ "GITHUB_TOKEN": "one", "MODE": "${MODE}" });
        let mut renewed = one.clone();
        renewed["env"]["GITHUB_TOKEN"] = json!("two");
        assert_eq!(bound(&one, &here), bound(&renewed, &there));
        for (path, value) in [
            ("/command", json!("node")),
            ("/args/1", json!("@scope/other@1")),
            ("/env/MODE", json!("--require=./x.js")),
        ] {
            let mut changed = one.clone();
            *changed.pointer_mut(path).unwrap() = value;
            assert_ne!(bound(&one, &here), bound(&changed, &here), "{path}");
        }
        let mut moved = one.clone();
        moved["cwd"] = json!("/elsewhere");
        assert_ne!(bound(&one, &here), bound(&moved, &here), "a directory that the entry names");
        let mut named = one.clone();
        named["env"]["NODE_OPTIONS"] = json!("");
        assert_ne!(bound(&one, &here), bound(&named, &here), "another variable");
    }

    #[test]
    fn a_directory_with_a_file_that_would_run_is_bound() {
        for (file, command, args) in [
            ("server.js", "node", vec!["server.js"]),
            ("server.js", "node", vec!["server"]),
            ("tools/serve", "./tools/serve", vec![]),
            ("hook.js", "node", vec!["--require=./hook.js", "/opt/server.js"]),
            ("mcp_server.py", "python3", vec!["-m", "mcp_server"]),
            ("mcp_server/__main__.py", "python3", vec!["-m", "mcp_server"]),
            ("pkg/__init__.py", "python3", vec!["-m", "pkg.inner"]),
            ("node_modules/.bin/server", "npx", vec!["-y", "@scope/server@2.1"]),
            ("node_modules/@scope/server/package.json", "npx", vec!["@scope/server"]),
        ] {
            let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let [here, there] = [here.path(), there.path()].map(|dir| AbsPath::new(dir).unwrap());
            let entry = entry(command, &args);
            assert_eq!(bound(&entry, &here), bound(&entry, &there), "{file}: nothing there yet");
            let approved = bound(&entry, &here);
            let path = there.join(file);
            std::fs::create_dir_all(path.parent().unwrap().as_path()).unwrap();
            std::fs::write(path.as_path(), "").unwrap();
            assert_ne!(approved, bound(&entry, &there), "{file}: the project brings it");
        }
    }
}
