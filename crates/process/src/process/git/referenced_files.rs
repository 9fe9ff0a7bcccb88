//! Files of the workspace that a repository's configuration makes git run, or read as configuration.
//!
//! The configuration that the user set up may refer to files of the tree: `core.hooksPath`, an included file, a filter. A
//! command that changes such a file changes what the user's next git command runs, so these files are protected.
//! The configuration is parsed here, without starting git: this is done for every command that may write, and starting git
//! would cost more than the command. Syntax that only git understands is missed.

use super::query::MAX_CONFIG_BYTES;
use super::repository::canonicalize;
use std::fs;
use std::path::Path;
use toolgate_proto::AbsPath;

/// The most repositories of one root: its own and those of its submodules.
const MAX_REPOSITORIES: usize = 64;

/// The most configuration files of one root, included ones among them.
const MAX_CONFIG_FILES: usize = 128;

/// Variables whose value is a command.
const COMMAND_KEYS: &[&str] = &[
    "fsmonitor",
    "sshcommand",
    "editor",
    "pager",
    "askpass",
    "external",
    "textconv",
    "command",
    "cmd",
    "clean",
    "smudge",
    "process",
    "driver",
    "program",
    "helper",
    "packobjectshook",
    "alternaterefscommand",
];

/// The files below these roots that git would run, or read as configuration.
pub fn find_git_referenced_files(roots: &[AbsPath]) -> Vec<AbsPath> {
    let mut out = Vec::new();
    for root in roots {
        let mut left = MAX_CONFIG_FILES;
        for (git_dir, top) in find_repositories(root) {
            for name in ["config", "config.worktree"] {
                read_config(&git_dir.join(name), &top, &mut left, &mut out);
            }
        }
    }
    out.sort();
    out.dedup();
    // A path at or above a root would protect the whole workspace.
    out.retain(|path| {
        roots.iter().any(|root| path.is_under(root)) && !roots.iter().any(|root| root.is_under(path))
    });
    out
}

/// The git directories of the repository at a root and of its submodules, each with its work tree.
fn find_repositories(root: &AbsPath) -> Vec<(AbsPath, AbsPath)> {
    let dot_git = root.join(".git");
    let git_dir = if dot_git.as_path().is_dir() {
        canonicalize(dot_git.as_path())
    } else {
        // A linked worktree or a submodule: `.git` is a file with the path of the git directory.
        let text = read_text(&dot_git);
        let pointed = text.as_deref().and_then(|text| text.strip_prefix("gitdir:")).map(str::trim);
        pointed.and_then(|path| canonicalize(&root.as_path().join(path)))
    };
    let Some(git_dir) = git_dir else { return Vec::new() };
    let mut out = vec![(git_dir.clone(), root.clone())];
    if let Some(common) = read_text(&git_dir.join("commondir"))
        && let Some(common) = canonicalize(&git_dir.as_path().join(common.trim_end()))
    {
        out.push((common, root.clone()));
    }
    let mut pending = vec![git_dir.join("modules")];
    while let Some(directory) = pending.pop() {
        let Ok(entries) = fs::read_dir(directory.as_path()) else { continue };
        for entry in entries.flatten() {
            if out.len() + pending.len() > MAX_REPOSITORIES {
                return out;
            }
            let path = directory.join(entry.file_name());
            if path.join("HEAD").as_path().is_file() {
                let tree = find_worktree(&path).unwrap_or_else(|| root.clone());
                pending.push(path.join("modules"));
                out.push((path, tree));
            } else if path.as_path().is_dir() {
                // The name of a submodule may contain slashes.
                pending.push(path);
            }
        }
    }
    out
}

/// The work tree of a submodule.
fn find_worktree(git_dir: &AbsPath) -> Option<AbsPath> {
    let text = read_text(&git_dir.join("config"))?;
    let value = parse_entries(&text).find(|(_, key, _)| key == "worktree").map(|(_, _, value)| value)?;
    canonicalize(&git_dir.as_path().join(value))
}

/// Adds the files that one configuration file and its includes refer to. `left` counts down the files that may be read.
fn read_config(file: &AbsPath, top: &AbsPath, left: &mut usize, out: &mut Vec<AbsPath>) {
    let Some(rest) = left.checked_sub(1) else { return };
    *left = rest;
    let Some(text) = read_text(file) else { return };
    for (section, key, value) in parse_entries(&text) {
        if value.is_empty() || value.starts_with('~') {
            continue;
        }
        match (section.as_str(), key.as_str()) {
            ("include" | "includeif", "path") => {
                let Some(directory) = file.parent() else { continue };
                let included = directory.join(&value).lexical();
                if !out.contains(&included) {
                    out.push(included.clone());
                    read_config(&included, top, left, out);
                }
            }
            ("core", "hookspath" | "attributesfile") => out.push(top.join(&value).lexical()),
            (_, key) if COMMAND_KEYS.contains(&key) => {
                let named =
                    value.split([' ', '\t', ';', '&', '|', '"', '\'']).filter(|word| word.contains('/'));
                let files =
                    named.map(|word| top.join(word).lexical()).filter(|path| path.as_path().is_file());
                out.extend(files);
            }
            _ => {}
        }
    }
}

/// Section, key and value of each line, sections and keys in lower case.
fn parse_entries(text: &str) -> impl Iterator<Item = (String, String, String)> {
    let mut section = String::new();
    text.trim_start_matches('\u{feff}').lines().filter_map(move |line| {
        let mut line = line.trim();
        // A key may follow the section on the same line.
        if let Some((header, rest)) = line.strip_prefix('[').and_then(|line| line.rsplit_once(']')) {
            let name = header.split([' ', '\t', '.', '"']).next().unwrap_or("");
            section = name.to_ascii_lowercase();
            line = rest.trim();
        }
        let (key, value) = line.split_once('=')?;
        let value = value.trim().trim_matches('"').replace("\\\\", "\\").replace("\\\"", "\"");
        Some((section.clone(), key.trim().to_ascii_lowercase(), value))
    })
}

/// Reads a small text file; invalid UTF-8 is replaced, because only paths and keys are of interest.
fn read_text(path: &AbsPath) -> Option<String> {
    let meta = fs::metadata(Path::new(path.as_path())).ok()?;
    if !meta.is_file() || meta.len() > MAX_CONFIG_BYTES {
        return None;
    }
    fs::read(path.as_path()).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_tree_in_the_configuration_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        for (name, text) in [
            (".git/HEAD", "ref: refs/heads/main\n"),
            (
                ".git/config",
                "[core]\n\thooksPath = tools/hooks\n\tfsmonitor = sh tools/watch.sh\n[include] path = ../shared\n\
                 [filter \"x\"]\n\tclean = \"python3 tools/clean.py %f\"\n[alias]\n\tt = !src/x\n[branch \"src\"]\n\tmerge = src\n",
            ),
            ("shared", "[includeIf \"gitdir:/\"]\n\tpath = more/config.inc\n"),
            ("more/config.inc", "[diff \"d\"]\n\ttextconv = ./tools/text\n[core]\n\thooksPath = ..\n"),
            ("tools/watch.sh", ""),
            ("tools/clean.py", ""),
            ("tools/text", ""),
            ("src/x", ""),
            (".git/modules/a/b/HEAD", ""),
            (".git/modules/a/b/config", "[core]\n\tworktree = ../../../../lib\n\thooksPath = h\n"),
            ("lib/h/pre-commit", ""),
        ] {
            let path = top.join(name);
            fs::create_dir_all(path.parent().unwrap().as_path()).unwrap();
            fs::write(path.as_path(), text).unwrap();
        }
        let mut wanted: Vec<AbsPath> = [
            "tools/hooks",
            "tools/watch.sh",
            "shared",
            "tools/clean.py",
            "more/config.inc",
            "tools/text",
            "lib/h",
        ]
        .map(|name| top.join(name))
        .to_vec();
        wanted.sort();
        assert_eq!(find_git_referenced_files(&[top]), wanted);
    }
}
