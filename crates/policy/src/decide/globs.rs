//! Shell patterns: the files that they name now are judged one by one; where those are not known, the pattern is.

use super::evaluation::{ObjectionKind, PolicyCheck, PolicyEvaluation};
use super::paths::AccessOrigin;
use crate::fold::fold_path;
use crate::protect::{ReadOrWrite, strip_workspace_roots};
use crate::rule::ActionIndex;
use crate::rule::path::PathIndex;
use crate::rule::segment::{PatternSegment, RelativeShellPattern, TraversalScope};
use toolgate_proto::protected_names::protected_names;
use toolgate_proto::secret_names::{SECRET_FILE_EXAMPLES, SECRET_FILE_NAMES};
use toolgate_proto::{AbsPath, Code, Effect, PathScope, RiskLevel, VerdictReason, WriteKind};
use toolgate_shell_syntax::InferredEffect;

impl PolicyEvaluation<'_> {
    /// What a command would do to the files that a pattern names.
    pub(crate) fn check_glob(&mut self, inferred: &InferredEffect, glob: &str, via: AccessOrigin) {
        let matches = self.request.facts.glob(glob).unwrap_or_default();
        if let Effect::Read { path: dir, scope } = &inferred.effect {
            if matches.is_empty() {
                self.check_glob_pattern(glob, dir, ReadOrWrite::Read, *scope == PathScope::Tree);
            }
            for path in matches {
                self.check_read(path, *scope, via);
            }
        } else if let Effect::Write { path: dir, kind } = &inferred.effect {
            if matches.is_empty() {
                self.check_glob_pattern(glob, dir, ReadOrWrite::Write, *kind == WriteKind::Tree);
            }
            for path in matches {
                self.check_write(path, *kind, via);
            }
        }
    }

    /// A pattern of which the files are not known: rules, protected and sensitive names that it may meet.
    pub(crate) fn check_glob_pattern(&mut self, glob: &str, dir: &AbsPath, touch: ReadOrWrite, deep: bool) {
        let folded = fold_path(glob).into_owned();
        let dir_text = fold_path(&dir.lexical().to_string()).into_owned();
        let rest = folded.strip_prefix(dir_text.trim_end_matches('/')).unwrap_or(&folded);
        let shape: Option<Vec<PatternSegment>> =
            rest.split('/').filter(|name| !name.is_empty()).map(PatternSegment::parse).collect();
        let compiled = self.compiled;
        let reach = shape
            .as_deref()
            .map_or(TraversalScope::All, |names| TraversalScope::Shape(RelativeShellPattern { names, deep }));
        let meets = |index: &PathIndex| index.find_below(&dir_text, reach, &self.folded);
        let rules = |index: &ActionIndex| {
            let edits = match touch {
                ReadOrWrite::Read => None,
                ReadOrWrite::Write => meets(&index.edits),
            };
            meets(&index.reads).into_iter().chain(edits).min()
        };
        let found = rules(&compiled.deny).or_else(|| rules(&compiled.ask));
        if let Some(id) = found {
            let text = format!("`{glob}` may name something that a rule keeps back");
            self.add_rule_objection(ObjectionKind::Explicit, PolicyCheck::Risks, Code::NobodyToAsk, text, id);
        }
        let bare: String = folded.chars().filter(|c| !matches!(c, '*' | '?' | '[' | ']')).collect();
        let workspace = self.request.workspace;
        let spoken = [folded.as_str(), bare.as_str()];
        let protected = || {
            let spoken = spoken.iter().find_map(|text| compiled.protection.protected_reason(text, workspace));
            spoken.or_else(|| match_protected_name(rest).map(|name| format!("it fits `{name}`")))
        };
        if touch == ReadOrWrite::Write
            && let Some(why) = protected()
        {
            let text = format!("`{glob}` may name a protected path: {why}");
            self.add_objection(
                ObjectionKind::Explicit,
                PolicyCheck::Protected,
                VerdictReason::new(Code::ProtectedPath, text),
            );
        }
        let secret = spoken
            .iter()
            .find_map(|text| {
                compiled.protection.sensitive_reason(strip_workspace_roots(text, workspace), touch)
            })
            .or_else(|| {
                match_secret_name(rest)
                    .map(|name| format!("`{glob}` may name `{name}`, which may hold secrets"))
            });
        if let Some(why) = secret {
            self.add_warning("sensitive_path", RiskLevel::High, why.clone());
            self.add_objection(
                ObjectionKind::ByDefault,
                PolicyCheck::Risks,
                VerdictReason::new(Code::NobodyToAsk, why),
            );
        }
    }
}

/// The well-known secret that a pattern below a directory is taken to mean, if it is.
fn match_secret_name(pattern: &str) -> Option<&'static str> {
    wildcard_names(pattern).find_map(|(name, segment)| {
        let fits = |secret: &str| PatternSegment::matches_path(std::slice::from_ref(&segment), secret);
        let start = literal_prefix(name);
        // A pattern for names with a dot is about few files; any other must spell out enough of the name.
        let enough = start.starts_with('.') || start.len() >= 3;
        let by_start =
            SECRET_FILE_NAMES.iter().find(|secret| enough && secret.starts_with(start) && fits(secret));
        let ending = name.rsplit_once('.').map(|(_, end)| end);
        let spelled = ending.is_some_and(|end| end.starts_with(|c: char| c.is_alphanumeric()));
        by_start.or_else(|| SECRET_FILE_EXAMPLES.iter().find(|secret| spelled && fits(secret))).copied()
    })
}

/// The protected name that a pattern below a directory is taken to mean, if it is: one that it begins like and fits.
fn match_protected_name(pattern: &str) -> Option<&'static str> {
    wildcard_names(pattern).find_map(|(name, segment)| {
        let start = literal_prefix(name);
        let fits = |own: &&str| {
            !start.is_empty()
                && own.starts_with(start)
                && PatternSegment::matches_path(std::slice::from_ref(&segment), own)
        };
        protected_names().find(fits)
    })
}

/// The names of a pattern that have wildcards.
fn wildcard_names(pattern: &str) -> impl Iterator<Item = (&str, PatternSegment)> {
    let names = pattern.split('/').filter(|name| name.contains(['*', '?', '[']));
    names.filter_map(|name| Some((name, PatternSegment::parse(name)?)))
}

/// What a pattern spells out before its first wildcard.
fn literal_prefix(name: &str) -> &str {
    name.find(['*', '?', '[', '\\']).and_then(|end| name.get(..end)).unwrap_or_default()
}
