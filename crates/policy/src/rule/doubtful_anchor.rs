//! Path rules that start at another directory than their author meant.
//!
//! `/etc/passwd` in a rule starts where the settings file belongs, not at the root of the file system. A deny rule that is
//! anchored there protects nothing, and nothing shows it until the file is read.

use super::syntax::{self, RuleSyntaxError};
use crate::raw::Layer;
use toolgate_proto::AbsPath;

/// Directories of the root of a file system that projects do not have, so that `/etc/…` is probably an absolute path.
const SYSTEM_DIRECTORIES: [&str; 15] = [
    "etc", "usr", "var", "opt", "root", "home", "Users", "proc", "sys", "dev", "boot", "mnt", "media", "srv",
    "private",
];

/// Why a path rule can never match: it contains a variable, or repeats the path of its own anchor.
pub(super) fn unreachable_reason(name: &str, content: &str, anchor: &AbsPath) -> Option<RuleSyntaxError> {
    for variable in ["$HOME/", "${HOME}/"] {
        if let Some(rest) = content.strip_prefix(variable) {
            return Some(RuleSyntaxError::new(
                "the rule never matches: variables are not expanded in rules",
                format!("did you mean `{}`?", syntax::write_rule(name, &format!("~/{rest}"))),
            ));
        }
    }
    let anchor = anchor.to_string();
    let has_depth = anchor.trim_matches('/').contains('/');
    let below = content.strip_prefix(&anchor).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    (has_depth && below.is_some()).then(|| {
        RuleSyntaxError::new(
            format!("the rule never matches: a path with one `/` starts at `{anchor}`"),
            format!("did you mean `{}`?", syntax::write_rule(name, &format!("/{content}"))),
        )
    })
}

/// Why a deny or ask rule for a path probably starts at the wrong directory: message and fix.
pub(crate) fn doubtful_anchor(text: &str, layer: Layer, anchor: &AbsPath) -> Option<(String, String)> {
    let rule = syntax::parse(text).ok()?;
    let content = rule.content?;
    let rest = content.strip_prefix('/').filter(|rest| !rest.starts_with('/'))?;
    let first = rest.split('/').next().unwrap_or(rest);
    let is_system = SYSTEM_DIRECTORIES.contains(&first);
    // The user's and the administrator's settings belong to no project, and hardly any file is beside them.
    let is_no_project = match layer {
        Layer::User | Layer::Managed => true,
        Layer::Cli | Layer::Session | Layer::Local | Layer::Project | Layer::Default => false,
    };
    if !is_system && !is_no_project {
        return None;
    }
    let absolute = syntax::write_rule(&rule.name, &format!("/{content}"));
    let fix = if is_system {
        format!("did you mean `{absolute}`?")
    } else {
        let floating = syntax::write_rule(&rule.name, rest);
        format!(
            "did you mean `{absolute}` for the root of the file system, or `{floating}` for every project?"
        )
    };
    // A text that is checked without its file has no directory to name.
    let start = match *anchor == AbsPath::root() {
        true => "at the directory that the settings file belongs to".to_owned(),
        false => format!("at `{anchor}`"),
    };
    Some((format!("a path with one `/` starts {start}, not at the root of the file system"), fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_repeats_its_anchor_or_names_a_variable_is_unreachable() {
        let anchor = AbsPath::new("/home/me/project").unwrap();
        for (content, meant) in [
            ("/home/me/project/secrets/**", Some("Read(//home/me/project/secrets/**)")),
            ("/home/me/project", Some("Read(//home/me/project)")),
            ("$HOME/.ssh/**", Some("Read(~/.ssh/**)")),
            ("${HOME}/.ssh/**", Some("Read(~/.ssh/**)")),
            ("/home/me/project-2/x", None),
            ("//home/me/project/secrets/**", None),
            ("/secrets/**", None),
            ("$HOMER/x", None),
        ] {
            let found = unreachable_reason("Read", content, &anchor).map(|problem| problem.fix);
            assert_eq!(found, meant.map(|meant| format!("did you mean `{meant}`?")), "{content}");
        }
        assert!(unreachable_reason("Read", "/x", &AbsPath::root()).is_none());
    }

    #[test]
    fn system_directories_and_users_settings_make_an_anchor_doubtful() {
        let anchor = AbsPath::new("/home/me/project").unwrap();
        for (text, layer, doubtful) in [
            ("Read(/etc/passwd)", Layer::Project, true),
            ("Read(//etc/passwd)", Layer::Project, false),
            ("Read(/src/**)", Layer::Project, false),
            ("Read(/src/**)", Layer::User, true),
            ("Read(src/**)", Layer::User, false),
            ("Read", Layer::User, false),
        ] {
            assert_eq!(doubtful_anchor(text, layer, &anchor).is_some(), doubtful, "{text} {layer}");
        }
    }
}
