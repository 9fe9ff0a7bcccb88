//! Which keys of the git configuration are overridden, and with what.
//!
//! A key that makes git run a program or read a file gets a harmless value, or the user's own value if the user allowed
//! git. Keys that are not listed keep their meaning.

use super::query::{GitConfigEntry, MAX_CONFIG_BYTES};
use std::fs;
use toolgate_proto::{AbsPath, GitUse};

/// A program that cannot be executed.
const NO_PROGRAM: &str = "/dev/null";

/// An empty file.
const NO_FILE: &str = "/dev/null";

/// The hash of the tree without entries, in SHA-1.
pub(super) const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
/// The hash of the tree without entries, in SHA-256.
pub(super) const EMPTY_TREE_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

/// Overrides for every command.
const BASE_SETTINGS: [(&str, &str); 14] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "true"),
    ("core.sshCommand", "ssh"),
    ("core.askPass", ""),
    ("core.alternateRefsCommand", ""),
    ("interactive.diffFilter", "cat"),
    ("gpg.program", "gpg"),
    ("gpg.ssh.program", "ssh-keygen"),
    ("log.showSignature", "false"),
    ("protocol.ext.allow", "never"),
    ("submodule.recurse", "false"),
    ("uploadpack.packObjectsHook", ""),
];

/// An external diff cannot be unset, only replaced: by git's own diff of the two files.
const BUILTIN_DIFF_COMMAND: &str =
    "f() { git --no-pager diff --no-index --no-ext-diff --no-textconv -- \"$2\" \"$5\"; true; }; f";

/// Further overrides if a part of the command line was allowed because git only reads: submodules have configuration of
/// their own.
pub(super) const PARTIAL_READ_SETTINGS: &[(&str, &str)] = &[
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.submodule", "short"),
    ("log.diffMerges", "separate"),
    ("safe.bareRepository", "explicit"),
    ("status.submoduleSummary", "false"),
];

/// Further overrides if git only reads.
pub(super) const READ_ONLY_SETTINGS: &[(&str, &str)] = &[
    ("core.attributesFile", NO_FILE),
    ("core.excludesFile", NO_FILE),
    ("core.sshCommand", NO_PROGRAM),
    ("core.alternateRefsCommand", NO_PROGRAM),
    ("core.commitGraph", "true"),
    ("diff.orderFile", NO_FILE),
    ("gpg.format", "openpgp"),
    ("gpg.program", NO_PROGRAM),
    ("gpg.openpgp.program", NO_PROGRAM),
    ("gpg.x509.program", NO_PROGRAM),
    ("gpg.ssh.program", NO_PROGRAM),
    ("gpg.ssh.allowedSignersFile", NO_FILE),
    ("gpg.ssh.revocationFile", NO_FILE),
    ("mailmap.file", NO_FILE),
    ("merge.default", "text"),
    ("stash.showPatch", "false"),
];

/// Environment variables that are set if git only reads.
pub(super) const READ_ONLY_VARIABLES: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", NO_FILE),
    ("GIT_CONFIG_GLOBAL", NO_FILE),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_ASKPASS", NO_PROGRAM),
    ("SSH_ASKPASS", NO_PROGRAM),
    ("GIT_SSH_COMMAND", NO_PROGRAM),
    ("GIT_SEQUENCE_EDITOR", "true"),
    // Missing objects are not fetched, and no transport is allowed.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    // git then accepts only repositories in `safe.directory`, which names this one alone.
    ("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1"),
];

/// Keys of the user's configuration that still apply if git only reads: they name no program and no file.
const PRESERVED_USER_SETTINGS: &[&str] = &[
    "advice.*",
    "blame.blankboundary",
    "blame.coloring",
    "blame.date",
    "blame.showemail",
    "blame.showroot",
    "branch.sort",
    "core.abbrev",
    "core.autocrlf",
    "core.checkstat",
    "core.commentchar",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.quotepath",
    "core.safecrlf",
    "core.symlinks",
    "core.trustctime",
    "core.whitespace",
    "diff.algorithm",
    "diff.context",
    "diff.indentheuristic",
    "diff.interhunkcontext",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "format.pretty",
    "grep.*",
    "i18n.commitencoding",
    "i18n.logoutputencoding",
    "init.defaultbranch",
    "log.abbrevcommit",
    "log.date",
    "log.decorate",
    "log.follow",
    "log.mailmap",
    "merge.conflictstyle",
    "pretty.*",
    "push.default",
    "remote.pushdefault",
    "status.*",
    "tag.sort",
    "user.email",
    "user.name",
    "versionsort.suffix",
];

/// [`BASE_SETTINGS`] as owned strings.
pub(super) fn base_settings() -> Vec<(String, String)> {
    BASE_SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// What a key of the repository's configuration is overridden with.
enum ConfigOverride {
    /// A harmless value.
    Value(&'static str),
    /// The user's own file, else none.
    UserFile,
    /// The user's own program, else this one; none if git only reads.
    UserProgram(&'static str),
}

/// The override for a key that makes git run a program or read a file; `None` for other keys.
fn find_override(row: &GitConfigEntry) -> Option<ConfigOverride> {
    use ConfigOverride::{UserFile, UserProgram, Value};
    let named = row.subsection.is_some();
    Some(match (row.section.as_str(), named, row.variable.as_str()) {
        ("diff", false, "external") | ("diff", true, "command") => Value(BUILTIN_DIFF_COMMAND),
        ("diff", true, "textconv") => Value("cat"),
        ("diff", true, "cachetextconv") | ("filter", true, "required") => Value("false"),
        ("diff", false, "orderfile") | ("mailmap", false, "file") | ("commit", false, "template") => UserFile,
        ("core", false, "excludesfile" | "attributesfile") => UserFile,
        // An empty value disables a filter and a list of helpers.
        ("filter", true, "clean" | "smudge" | "process") | ("credential", _, "helper") => Value(""),
        ("merge", false, "default") => Value("text"),
        ("remote", true, "uploadpack") => Value("git-upload-pack"),
        ("remote", true, "receivepack") => Value("git-receive-pack"),
        ("gpg", true, "program") => match row.subsection.as_deref() {
            Some("ssh") => UserProgram("ssh-keygen"),
            Some("x509") => UserProgram("gpgsm"),
            Some(_) | None => UserProgram("gpg"),
        },
        ("gpg", _, "defaultkeycommand") => UserProgram(""),
        ("alias", ..) => UserProgram("version"),
        ("pager", ..) => UserProgram("false"),
        ("sequence", false, "editor") => Value("true"),
        ("submodule", true, "update") if row.value.starts_with('!') => Value("none"),
        ("submodule", true, "ignore") => Value("dirty"),
        ("difftool" | "mergetool" | "browser" | "man" | "guitool", true, "path" | "cmd") => {
            UserProgram("false")
        }
        ("web" | "help" | "instaweb", false, "browser" | "httpd") => UserProgram("false"),
        ("core" | "interactive" | "uploadpack", false, _) => return None,
        // Names that git, or a later version of it, may use for a program.
        (
            _,
            _,
            "cmd" | "command" | "program" | "helper" | "driver" | "tunnel" | "tocmd" | "cccmd" | "headercmd",
        ) => UserProgram("false"),
        _ => return None,
    })
}

/// The overrides for the keys of the repository's configuration.
pub(super) fn override_repository_settings(rows: &[GitConfigEntry], usage: GitUse) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for row in rows.iter().filter(|row| row.of_repository) {
        let key = row.key();
        if out.iter().any(|(known, _)| *known == key) {
            continue;
        }
        match find_override(row) {
            Some(ConfigOverride::Value(value)) => out.push((key, value.to_owned())),
            Some(ConfigOverride::UserProgram(_)) if usage == GitUse::Reads => {
                out.push((key, NO_PROGRAM.to_owned()))
            }
            Some(ConfigOverride::UserFile) if usage == GitUse::Reads => out.push((key, NO_FILE.to_owned())),
            Some(neutral @ (ConfigOverride::UserProgram(_) | ConfigOverride::UserFile)) => {
                let own = rows.iter().rfind(|own| !own.of_repository && own.key() == key);
                let otherwise =
                    if let ConfigOverride::UserProgram(program) = neutral { program } else { NO_FILE };
                out.push((key, own.map_or_else(|| otherwise.to_owned(), |own| own.value.clone())));
            }
            None => {}
        }
    }
    out
}

/// The user's harmless keys that the repository does not set.
pub(super) fn preserved_user_settings(rows: &[GitConfigEntry]) -> Vec<(String, String)> {
    let listed = |key: &str| {
        PRESERVED_USER_SETTINGS.iter().any(|known| match known.strip_suffix('*') {
            Some(section) => key.starts_with(section),
            None => *known == key,
        })
    };
    rows.iter()
        .filter(|row| !row.of_repository && listed(&row.key()))
        .filter(|row| !rows.iter().any(|other| other.of_repository && other.key() == row.key()))
        .map(|row| (row.key(), row.value.clone()))
        .collect()
}

/// The overrides for a command line without git, read from the configuration files without starting git.
pub(super) fn read_settings_without_git(cwd: &AbsPath) -> Vec<(String, String)> {
    let mut out = base_settings();
    let mut above = Some(cwd.clone());
    while let Some(dir) = above {
        let config = dir.join(".git/config");
        let small = fs::metadata(&config).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_CONFIG_BYTES);
        if small && let Ok(bytes) = fs::read(&config) {
            out.extend(parse_overrides(&String::from_utf8_lossy(&bytes)));
        }
        above = dir.parent();
    }
    out
}

/// The overrides for one configuration file.
fn parse_overrides(config: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut section = String::new();
    let mut name = String::new();
    for line in config.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[')
            && let Some((head, after)) = rest.split_once(']')
        {
            (section, name) = match head.split_once('"') {
                Some((section, name)) => {
                    let name =
                        name.strip_suffix('"').unwrap_or(name).replace("\\\"", "\"").replace("\\\\", "\\");
                    (section.trim().to_ascii_lowercase(), name)
                }
                None => match head.split_once('.') {
                    Some((section, name)) => (section.trim().to_ascii_lowercase(), name.to_ascii_lowercase()),
                    None => (head.trim().to_ascii_lowercase(), String::new()),
                },
            };
            line = after.trim();
        }
        let key = line.split(['=', ' ', '\t']).next().unwrap_or_default().to_ascii_lowercase();
        let value = match (section.as_str(), name.is_empty(), key.as_str()) {
            ("diff", true, "external") | ("diff", false, "command") => BUILTIN_DIFF_COMMAND,
            ("diff", false, "textconv") => "cat",
            // An empty value disables a filter.
            ("filter", false, "clean" | "smudge" | "process") => "",
            ("filter", false, "required") => "false",
            ("merge", false, "driver") => "false",
            ("credential", _, "helper") => "",
            ("remote", false, "uploadpack") => "git-upload-pack",
            ("remote", false, "receivepack") => "git-receive-pack",
            _ => continue,
        };
        let full =
            if name.is_empty() { format!("{section}.{key}") } else { format!("{section}.{name}.{key}") };
        out.push((full, value.to_owned()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_in_keys_that_the_repository_names_are_found() {
        let config = "[core]\n\teditor = x\n[diff]\n external = evil\n[diff \"Weird \\\"name\"]\n\tTextConv=evil\n\
                      [filter \"f\"] clean = evil\nprocess\t= evil\n[merge \"m\"]\ndriver=evil\n[credential]\nhelper = !evil\n";
        let found: Vec<String> = parse_overrides(config).into_iter().map(|(key, _)| key).collect();
        assert_eq!(
            found,
            [
                "diff.external",
                "diff.Weird \"name.textconv",
                "filter.f.clean",
                "filter.f.process",
                "merge.m.driver",
                "credential.helper"
            ]
        );
        assert_eq!(parse_overrides("[user]\nname = a\n[remote \"o\"]\nurl = x\n"), []);
    }
}
