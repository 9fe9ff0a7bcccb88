//! What a repository could make git run, and settings that take it away.
//!
//! A repository's own `config` comes with an archive as any other file does, and names programs: a watcher for
//! `git status`, a pager, a diff, a filter.
//! Settings given by the environment come after every file, so most are simply set.
//! Those with a name of the repository's choosing are looked up in its `config` first.
//! Not covered: a `config` that includes another file which names a filter or a diff of its own.

use std::fs;
use toolgate_proto::AbsPath;

/// More than any honest configuration has.
const MOST_BYTES: u64 = 1 << 20;

const ALWAYS: [(&str, &str); 14] = [
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

/// An external diff cannot be unset, only replaced: by git's own, on the two files it is handed.
const OWN_DIFF: &str =
    "f() { git --no-pager diff --no-index --no-ext-diff --no-textconv -- \"$2\" \"$5\"; true; }; f";

/// The settings for a command that starts in this directory.
pub(super) fn overrides(cwd: &AbsPath) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> =
        ALWAYS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let mut above = Some(cwd.clone());
    while let Some(dir) = above {
        let config = dir.join(".git/config");
        let small = fs::metadata(&config).is_ok_and(|meta| meta.is_file() && meta.len() <= MOST_BYTES);
        if small && let Ok(bytes) = fs::read(&config) {
            out.extend(chosen(&String::from_utf8_lossy(&bytes)));
        }
        above = dir.parent();
    }
    out
}

/// What a configuration names for itself.
fn chosen(config: &str) -> Vec<(String, String)> {
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
            ("diff", true, "external") | ("diff", false, "command") => OWN_DIFF,
            ("diff", false, "textconv") => "cat",
            // An empty filter is none.
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
    fn programs_under_names_of_the_repositorys_choice_are_found() {
        let config = "[core]\n\teditor = x\n[diff]\n external = evil\n[diff \"Weird \\\"name\"]\n\tTextConv=evil\n\
                      [filter \"f\"] clean = evil\nprocess\t= evil\n[merge \"m\"]\ndriver=evil\n[credential]\nhelper = !evil\n";
        let found: Vec<String> = chosen(config).into_iter().map(|(key, _)| key).collect();
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
        assert_eq!(chosen("[user]\nname = a\n[remote \"o\"]\nurl = x\n"), []);
    }
}
