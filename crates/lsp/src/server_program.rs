//! Where the program of a server is, and whether it is more than a placeholder.

use crate::server_entry::LspServerEntry;
use std::collections::BTreeMap;
use toolgate_files::{FileStamp, SearchPath, is_executable, list_folder, read_file_stamp};
use toolgate_proto::AbsPath;

/// The file of a server's program: a path, or a name in the search path of this environment. A placeholder of rustup whose
/// component is not installed is left out: it can only say so.
pub fn find_server_program(entry: &LspServerEntry, env: &BTreeMap<String, String>) -> Option<AbsPath> {
    let search_path = SearchPath::open(variable(entry, env, "PATH").unwrap_or_default());
    find_in_search_path(entry, env, &search_path)
}

/// Whether the program of at least one of these servers is installed.
pub(crate) fn has_server_program<'a>(
    mut entries: impl Iterator<Item = &'a LspServerEntry>,
    env: &BTreeMap<String, String>,
) -> bool {
    let shared = SearchPath::open(env.get("PATH").map(String::as_str).unwrap_or_default());
    entries.any(|entry| match entry.env.contains_key("PATH") {
        true => find_server_program(entry, env).is_some(),
        false => find_in_search_path(entry, env, &shared).is_some(),
    })
}

/// A variable of the environment of a server.
fn variable<'a>(entry: &'a LspServerEntry, env: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    entry.env.get(name).or_else(|| env.get(name)).map(String::as_str)
}

/// The file of a server's program, where its search path is opened.
fn find_in_search_path(
    entry: &LspServerEntry,
    env: &BTreeMap<String, String>,
    search_path: &SearchPath,
) -> Option<AbsPath> {
    let command = &entry.command;
    if command.contains('/') {
        return AbsPath::new(command).ok().filter(is_executable);
    }
    let directory = |name: &str| variable(entry, env, name).and_then(|path| AbsPath::new(path).ok());
    let rustup_home = || directory("RUSTUP_HOME").or_else(|| Some(directory("HOME")?.join(".rustup")));
    let mut programs = search_path.find_programs(command);
    programs.find(|program| !is_empty_placeholder(program, command, rustup_home().as_ref()))
}

/// Whether a program is rustup under another name, and no toolchain has the component that it stands for. Which toolchain
/// applies depends on the directory, so one that has it is enough.
fn is_empty_placeholder(program: &AbsPath, command: &str, rustup_home: Option<&AbsPath>) -> bool {
    // The placeholders are symlinks or hard links to the program beside them.
    let rustup =
        program.parent().map_or(FileStamp::Absent, |directory| read_file_stamp(&directory.join("rustup")));
    if rustup == FileStamp::Absent || rustup != read_file_stamp(program) {
        return false;
    }
    let Some(toolchains) = rustup_home.map(|home| home.join("toolchains")) else { return false };
    // A directory that cannot be listed says nothing: the program may work.
    let Ok(entries) = list_folder(&toolchains) else { return false };
    !entries
        .iter()
        .filter(|entry| entry.is_directory)
        .any(|entry| is_executable(&toolchains.join(&entry.name).join("bin").join(command)))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the files that they look for")]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// Makes a program that does nothing.
    fn write_program(path: &std::path::Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_placeholder_of_rustup_counts_only_with_its_component() {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join(".cargo/bin");
        write_program(&bin.join("rustup"));
        symlink("rustup", bin.join("rust-analyzer")).unwrap();
        std::fs::hard_link(bin.join("rustup"), bin.join("rls")).unwrap();
        std::fs::create_dir_all(home.path().join(".rustup/toolchains/stable/bin")).unwrap();
        let env = BTreeMap::from([
            ("PATH".to_owned(), format!("/nonexistent:{}", bin.display())),
            ("HOME".to_owned(), home.path().display().to_string()),
        ]);
        let find = |command: &str| find_server_program(&LspServerEntry::new("x", command), &env);
        assert_eq!((find("rust-analyzer"), find("rls")), (None, None));
        write_program(&home.path().join(".rustup/toolchains/nightly/bin/rust-analyzer"));
        assert!(find("rust-analyzer").is_some());
        assert_eq!(find("rls"), None);
        // A program of another origin is taken as it is.
        write_program(&bin.join("clangd"));
        assert!(find("clangd").is_some());
    }

    #[test]
    fn a_placeholder_does_not_hide_a_real_program_behind_it() {
        let home = tempfile::tempdir().unwrap();
        let (first, second) = (home.path().join("first"), home.path().join("second"));
        write_program(&first.join("rustup"));
        symlink("rustup", first.join("rust-analyzer")).unwrap();
        write_program(&second.join("rust-analyzer"));
        let path = format!("{}:{}", first.display(), second.display());
        let home = home.path().display().to_string();
        let env = BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), home)]);
        let found = find_server_program(&LspServerEntry::new("x", "rust-analyzer"), &env).unwrap();
        assert_eq!(found.as_path(), second.join("rust-analyzer"));
    }
}
