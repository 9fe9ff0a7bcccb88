//! Shell globs in command lines: the files that a glob matches now are checked one by one; if none or too many are
//! known, the glob itself is checked.

use super::evaluation::PolicyEvaluation;
use super::objection::{ObjectionKind, PolicyCheck};
use super::paths::AccessOrigin;
use crate::fold::fold_path;
use crate::protect::{ReadOrWrite, strip_workspace_roots};
use crate::rule::ActionIndex;
use crate::rule::path_index::PathIndex;
use crate::rule::segment::{PatternSegment, RelativeShellPattern, TraversalScope};
use toolgate_proto::protected_names::protected_names;
use toolgate_proto::secret_names::{secret_extension_examples, secret_glob_names};
use toolgate_proto::wildcard::widen_posix_classes;
use toolgate_proto::{AbsPath, Code, Effect, PathScope, RiskLevel, WriteKind};
use toolgate_shell_syntax::InferredEffect;

impl PolicyEvaluation<'_> {
    /// Checks what a command would do to the files that a glob matches.
    pub(crate) fn check_glob(&mut self, inferred: &InferredEffect, glob: &str, origin: AccessOrigin) {
        let matches = self.request.facts.glob(glob).unwrap_or_default();
        if let Effect::Read { path: directory, scope } = &inferred.effect {
            if matches.is_empty() {
                self.check_glob_pattern(glob, directory, ReadOrWrite::Read, *scope == PathScope::Tree);
            }
            for path in matches {
                self.check_read(path, *scope, origin);
            }
        } else if let Effect::Write { path: directory, kind } = &inferred.effect {
            if matches.is_empty() {
                self.check_glob_pattern(glob, directory, ReadOrWrite::Write, *kind == WriteKind::Tree);
            }
            for path in matches {
                self.check_write(path, *kind, origin);
            }
        }
    }

    /// Checks a glob whose files are not known: against rules, protected names and sensitive names that it may match.
    /// `deep` means that everything below a match is accessed too.
    pub(crate) fn check_glob_pattern(
        &mut self,
        glob: &str,
        directory: &AbsPath,
        access: ReadOrWrite,
        deep: bool,
    ) {
        let folded = fold_path(&widen_posix_classes(glob)).into_owned();
        let directory = fold_path(&directory.lexical().to_string()).into_owned();
        let below = folded.strip_prefix(directory.trim_end_matches('/')).unwrap_or(&folded);
        self.check_glob_rules(glob, &directory, below, access, deep);
        // Without its wildcards `.e[n]v` is `.env`: that spelling is compared as well.
        let literal: String = folded.chars().filter(|c| !matches!(c, '*' | '?' | '[' | ']')).collect();
        let spellings = [folded.as_str(), literal.as_str()];
        let (protection, workspace) = (&self.compiled.protection, self.request.workspace);
        let protected = || {
            let reason = spellings.iter().find_map(|text| protection.protected_reason(text, workspace));
            reason.or_else(|| match_protected_name(below).map(|name| format!("it matches `{name}`")))
        };
        if access == ReadOrWrite::Write
            && let Some(why) = protected()
        {
            self.ask_about_protected(format!("`{glob}` may match a protected path: {why}"));
        }
        let secret = spellings
            .iter()
            .find_map(|text| protection.sensitive_reason(strip_workspace_roots(text, workspace), access))
            .or_else(|| {
                match_secret_name(strip_workspace_roots(&folded, workspace))
                    .map(|name| format!("`{glob}` may match `{name}`, which may hold secrets"))
            });
        if let Some(why) = secret {
            self.add_warning("sensitive_path", RiskLevel::High, why.clone());
            self.ask_about_risk(ObjectionKind::ByDefault, why);
        }
    }

    /// Whether a glob in a directory cannot match the workspace, the working directory or the home directory, or a directory
    /// that contains one of them. A name of wildcards only is taken to mean everything in the directory.
    pub(crate) fn spares_kept_directories(&self, glob: &str, directory: &AbsPath) -> bool {
        let directory = directory.lexical().to_string();
        let directory = directory.trim_end_matches('/');
        let below = |path: &str| -> Option<String> {
            let rest = path.strip_prefix(directory)?.strip_prefix('/')?;
            rest.split('/').next().filter(|name| !name.is_empty()).map(str::to_owned)
        };
        let Some(first) = below(glob) else { return false };
        let Some(segment) = PatternSegment::parse(&fold_path(&widen_posix_classes(&first))) else {
            return false;
        };
        let is_specific = first.chars().any(char::is_alphanumeric) && !first.starts_with('[');
        let workspace = self.request.workspace;
        let mut kept = workspace.roots.iter().chain([&workspace.cwd]).chain(&workspace.home);
        is_specific
            && kept.all(|kept| {
                below(&kept.to_string()).is_none_or(|name| {
                    !PatternSegment::matches_path(std::slice::from_ref(&segment), &fold_path(&name))
                })
            })
    }

    /// Deny and ask rules that may match a file which the glob matches. `below` is the glob without its directory.
    fn check_glob_rules(
        &mut self,
        glob: &str,
        directory: &str,
        below: &str,
        access: ReadOrWrite,
        deep: bool,
    ) {
        let names: Option<Vec<PatternSegment>> =
            below.split('/').filter(|name| !name.is_empty()).map(PatternSegment::parse).collect();
        let scope = names
            .as_deref()
            .map_or(TraversalScope::All, |names| TraversalScope::Shape(RelativeShellPattern { names, deep }));
        let find_below = |index: &PathIndex| index.find_below(directory, scope, &self.folded);
        let find = |index: &ActionIndex| {
            let edits = match access {
                ReadOrWrite::Read => None,
                ReadOrWrite::Write => find_below(&index.edits),
            };
            find_below(&index.reads).into_iter().chain(edits).min()
        };
        let compiled = self.compiled;
        if let Some(id) = find(&compiled.deny).or_else(|| find(&compiled.ask)) {
            let text = format!("`{glob}` may match a file that a rule denies or asks about");
            self.add_rule_objection(
                ObjectionKind::Explicit,
                PolicyCheck::Risks,
                Code::ApprovalUnavailable,
                text,
                id,
            );
        }
    }
}

/// The well-known secret that a glob is taken to mean, if any.
fn match_secret_name(pattern: &str) -> Option<&'static str> {
    let names: Vec<&str> = pattern.split('/').filter(|name| !name.is_empty()).collect();
    let mut wildcards = names.iter().enumerate().filter(|(_, name)| has_wildcard(name));
    wildcards.find_map(|(at, name)| {
        let start = literal_prefix(name);
        // This name may be any name of a secret path: `.kub*/config` and `.kube/conf*` both mean `.kube/config`.
        let is_meant = |secret: &&str| {
            secret.split('/').enumerate().filter(|(_, own)| own.starts_with(start)).any(|(place, _)| {
                let window = at.checked_sub(place).and_then(|first| names.get(first..));
                window.is_some_and(|window| is_abbreviation(window, secret))
            })
        };
        let by_start = if start.is_empty() { None } else { secret_glob_names().find(is_meant) };
        by_start.or_else(|| match_secret_extension(name))
    })
}

/// Whether the first of these names match a secret name by name, and spell out enough of it.
fn is_abbreviation(names: &[&str], secret: &str) -> bool {
    let mut names = names.iter().copied();
    let mut spelled_out = 0;
    let matches = secret.split('/').all(|own| {
        let Some(name) = names.next() else { return false };
        let start = if has_wildcard(name) { literal_prefix(name) } else { name };
        spelled_out += start.len();
        // A name of wildcards only abbreviates nothing: `.config/*/*` means many files.
        !start.is_empty() && own.starts_with(start) && matches_name(name, own)
    });
    // A glob for hidden names matches few files; any other must spell out enough of the name.
    matches && (secret.starts_with('.') || spelled_out >= 3)
}

/// The example of a key file that a name with a literal extension matches, if any.
fn match_secret_extension(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    let first = extension.chars().next().filter(|first| first.is_alphanumeric())?;
    let begins =
        |example: &&str| example.rsplit('.').next().is_some_and(|extension| extension.starts_with(first));
    secret_extension_examples().filter(begins).find(|example| matches_name(name, example))
}

/// The protected name that a glob is taken to mean, if any: one that it matches and shares a literal prefix with.
fn match_protected_name(pattern: &str) -> Option<&'static str> {
    pattern.split('/').filter(|name| has_wildcard(name)).find_map(|name| {
        let start = literal_prefix(name);
        let begins = |protected: &&str| !start.is_empty() && protected.starts_with(start);
        protected_names().filter(begins).find(|protected| matches_name(name, protected))
    })
}

/// Whether a name of a glob contains wildcards.
fn has_wildcard(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Whether a name of a glob matches a file name.
fn matches_name(name: &str, file_name: &str) -> bool {
    PatternSegment::parse(name)
        .is_some_and(|segment| PatternSegment::matches_path(std::slice::from_ref(&segment), file_name))
}

/// What a name of a glob spells out before its first wildcard.
fn literal_prefix(name: &str) -> &str {
    name.find(['*', '?', '[', '\\']).and_then(|end| name.get(..end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_secret_is_found_by_a_glob_that_abbreviates_any_of_its_names() {
        for secret in secret_glob_names() {
            let names: Vec<&str> = secret.split('/').collect();
            for (place, own) in names.iter().enumerate() {
                let needed = if secret.contains('/') || secret.starts_with('.') { 1 } else { 3 };
                for cut in needed..own.len() {
                    let mut glob = names.clone();
                    let short = format!("{}*", own.split_at(cut).0);
                    glob[place] = &short;
                    let glob = format!("/home/u/{}", glob.join("/"));
                    assert!(match_secret_name(&glob).is_some(), "{glob}");
                    assert!(match_secret_name(&format!("{glob}/x")).is_some(), "{glob}/x");
                }
            }
        }
        for example in secret_extension_examples() {
            let glob = format!("/ws/*.{}", example.rsplit('.').next().unwrap());
            assert_eq!(match_secret_name(&glob), Some(example));
        }
    }

    #[test]
    fn a_glob_that_spells_out_too_little_of_a_secret_is_not_taken_to_mean_it() {
        for name in ["*", "c*", "src/*.rs", "ser*", ".config/*/*", "etc/*", "hos*", ".gitig*"] {
            let glob = format!("/ws/{name}");
            assert_eq!(match_secret_name(&glob), None, "{glob}");
        }
    }
}
