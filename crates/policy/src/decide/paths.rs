//! Reads and writes of paths: by a tool, by a redirect, by a command.
//!
//! A path has several forms: as spelled, with `..` removed lexically, each symlink on the way, and the real path that
//! they resolve to. A deny or ask rule counts if it matches any form; an allow rule counts only if the spelled and the
//! real path are both allowed. So a symlink can neither hide a denied file nor lead out of an allowed directory.

use super::evaluation::{PolicyEvaluation, ToolWideGrant};
use super::objection::{ObjectionKind, ObjectionRemedy, PolicyCheck};
use crate::fold::fold_path;
use crate::protect::ReadOrWrite;
use crate::rule::path::PathUse;
use crate::rule::path_index::PathIndex;
use crate::rule::{ActionIndex, syntax};
use std::borrow::Cow;
use toolgate_proto::{AbsPath, Code, Mode, PathFact, PathScope, RuleSuggestion, VerdictReason, WriteKind};

/// What accesses a path, and so what may cover the access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessOrigin {
    /// A tool that declared the effect: a rule for the tool covers it.
    Tool,
    /// A redirect of a command line: only a rule for the path covers it.
    Redirect,
    /// A command that a rule or the mode covers: it may access the workspace.
    Granted {
        /// The rule is for exactly this command, so it also names the path.
        exactly: bool,
    },
    /// A command that nothing covers yet. Only objections matter here; the command itself is asked about once.
    Command,
}

/// The forms of one path.
pub(super) struct PathForms<'p> {
    /// Every distinct form, the lexical one first.
    pub(super) all: Vec<Cow<'p, str>>,
    /// As spelled, with `..` removed lexically.
    pub(super) lexical: Cow<'p, str>,
    /// With all symlinks resolved; the lexical form if nothing is known about the path.
    pub(super) real: Cow<'p, str>,
    /// What was found at the path before the decision.
    pub(super) fact: Option<&'p PathFact>,
}

impl PolicyEvaluation<'_> {
    /// Computes the forms of a path. A plain path without symlinks has one form and borrows it.
    fn path_forms<'p>(&self, path: &'p AbsPath) -> PathForms<'p>
    where
        Self: 'p,
    {
        let fact = self.request.facts.get(path);
        let spelled = path.as_path().to_string_lossy();
        let lexical =
            if spelled.contains("/..") { Cow::Owned(path.lexical().to_string()) } else { spelled.clone() };
        let real = match fact {
            Some(fact) if fact.real != *path => Cow::Owned(fact.real.to_string()),
            Some(_) | None => lexical.clone(),
        };
        let mut all = vec![lexical.clone()];
        let links = fact.into_iter().flat_map(|fact| &fact.links);
        let others = links.map(|link| Cow::Owned(link.to_string()));
        for form in std::iter::once(real.clone()).chain(others) {
            if !all.contains(&form) {
                all.push(form);
            }
        }
        PathForms { all, lexical, real, fact }
    }

    /// The first deny or ask rule that matches any form.
    fn find_for_any_form(&self, index: &PathIndex, forms: &PathForms<'_>) -> Option<u32> {
        if index.is_empty() {
            return None;
        }
        forms.all.iter().filter_map(|form| index.find(&fold_path(form), &self.folded)).min()
    }

    /// Allow rules that match the lexical and the real path: one for both, or one for each.
    fn find_for_both_forms(
        &self,
        forms: &PathForms<'_>,
        find: impl Fn(&ActionIndex, &str) -> Option<u32>,
    ) -> Option<u32> {
        let find = |form: &str| self.compiled.find_allow(|allow| find(allow, form));
        let lexical = find(&forms.lexical)?;
        find(&forms.real).map(|real| lexical.min(real))
    }

    /// An allow rule for reading. A rule for editing implies it.
    fn find_read_rule(&self, forms: &PathForms<'_>) -> Option<u32> {
        let by_path = self.find_for_both_forms(forms, |allow, form| {
            let read = allow.reads.find(form, &self.exact);
            read.into_iter().chain(allow.edits.find(form, &self.exact)).min()
        });
        let bare = ["Read", "Edit"]
            .into_iter()
            .filter_map(|name| self.compiled.find_allow(|allow| allow.tools.find_name(name)));
        by_path.into_iter().chain(bare).min()
    }

    /// An allow rule for writing.
    fn find_edit_rule(&self, forms: &PathForms<'_>) -> Option<u32> {
        self.find_for_both_forms(forms, |allow, form| allow.edits.find(form, &self.exact))
            .into_iter()
            .chain(self.compiled.find_allow(|allow| allow.tools.find_name("Edit")))
            .min()
    }

    /// Whether the real path is inside a root. A path without facts is not.
    fn is_inside_workspace(&self, forms: &PathForms<'_>) -> bool {
        forms.fact.is_some_and(|fact| {
            fact.problem.is_none() && self.request.workspace.roots.iter().any(|root| fact.real.is_under(root))
        })
    }

    /// Checks a read of one entry or of a tree.
    pub(crate) fn check_read(&mut self, path: &AbsPath, scope: PathScope, origin: AccessOrigin) {
        let forms = self.path_forms(path);
        if is_null_device(&forms, origin) {
            return;
        }
        self.check_path_rules(path, &forms, PathUse::Read);
        if self.check_read_risks(path, &forms, scope, origin) {
            return;
        }
        if self.is_inside_workspace(&forms) {
            if matches!(origin, AccessOrigin::Tool | AccessOrigin::Redirect) {
                self.add_allow_reason("reading inside the workspace is allowed", None);
            }
            return;
        }
        if let Some(id) = self.find_read_rule(&forms) {
            self.add_allow_reason("a rule allows reading the path", Some(id));
            return;
        }
        if origin == AccessOrigin::Tool
            && let Some(grant) = self.grant
        {
            self.add_grant_reason(grant);
            return;
        }
        self.add_outside_objection(path, &forms, ReadOrWrite::Read);
    }

    /// Checks a write of one file or of a tree.
    pub(crate) fn check_write(&mut self, path: &AbsPath, kind: WriteKind, origin: AccessOrigin) {
        let forms = self.path_forms(path);
        if is_null_device(&forms, origin) {
            return;
        }
        self.ask_in_plan_mode(format_args!("`{path}` would be written"));
        self.check_path_rules(path, &forms, PathUse::Edit);
        if self.check_write_risks(path, &forms, kind, origin) {
            return;
        }
        let is_inside = self.is_inside_workspace(&forms);
        let grant = match origin {
            AccessOrigin::Tool => self.grant,
            // A rule for the whole tool covers its lines as they are; one for a command does not cover where the output goes.
            AccessOrigin::Redirect if is_inside => self.grant,
            AccessOrigin::Redirect => None,
            // A covered command may write in the workspace; an uncovered one is asked about once, as a command.
            AccessOrigin::Granted { .. } | AccessOrigin::Command if is_inside => return,
            AccessOrigin::Granted { .. } | AccessOrigin::Command => None,
        };
        if let Some(grant) = self.find_edit_rule(&forms).map(ToolWideGrant::Rule).or(grant) {
            self.add_grant_reason(grant);
            return;
        }
        if is_inside && self.mode == Mode::AcceptEdits {
            self.add_allow_reason("mode acceptEdits allows changes inside the workspace", None);
            return;
        }
        if is_inside {
            self.add_uncovered_objection(format!("no rule allows writing `{}`", forms.real), None);
            self.suggest_path_rules(ReadOrWrite::Write, &forms);
            return;
        }
        self.add_outside_objection(path, &forms, ReadOrWrite::Write);
    }

    /// A path outside the workspace that no rule allows: asks, or is denied if the settings block such paths.
    fn add_outside_objection(&mut self, path: &AbsPath, forms: &PathForms<'_>, access: ReadOrWrite) {
        let (is_blocked, verb) = match access {
            ReadOrWrite::Read => (self.compiled.block_reads_outside, "reading"),
            ReadOrWrite::Write => (self.compiled.block_writes_outside, "writing"),
        };
        let real = self.request.facts.get(path).map_or(path, |fact| &fact.real);
        let (kind, text) = if is_blocked {
            let text = format!("`{real}` is outside the workspace, and the settings forbid {verb} there");
            (ObjectionKind::Deny, text)
        } else {
            let text = format!("`{real}` is outside the workspace, and no rule allows {verb} it");
            (ObjectionKind::ByDefault, text)
        };
        self.add_objection(kind, PolicyCheck::Grants, VerdictReason::new(Code::OutsideRoots, text));
        self.suggest_path_rules(access, forms);
    }

    /// Offers rules for exactly this path, as the remedy of the last objection: for a symlink one for the path and one for its target, because an allow rule
    /// counts only if both are allowed.
    pub(super) fn suggest_path_rules(&mut self, access: ReadOrWrite, forms: &PathForms<'_>) {
        let target = Some(&*forms.real).filter(|real| *real != forms.lexical);
        self.suggest_rules_for_forms(access, std::iter::once(&*forms.lexical).chain(target));
    }

    /// Offers a rule for exactly each of these forms of a path, if all of them can be written in rules.
    pub(super) fn suggest_rules_for_forms<'f>(
        &mut self,
        access: ReadOrWrite,
        forms: impl Iterator<Item = &'f str>,
    ) {
        let rules: Option<Vec<String>> = forms.map(|form| exact_path_rule(access, form)).collect();
        if let Some(rules) = rules {
            let rules = rules.into_iter().map(RuleSuggestion::new).collect();
            self.set_remedy(ObjectionRemedy::AllowRules(rules));
        }
    }

    /// Deny and ask rules for the path.
    fn check_path_rules(&mut self, path: &AbsPath, forms: &PathForms<'_>, usage: PathUse) {
        let find = |index: &ActionIndex| {
            let reads = || {
                self.find_for_any_form(&index.reads, forms)
                    .into_iter()
                    .chain(index.tools.find_restricted_name("Read"))
                    .min()
            };
            match usage {
                PathUse::Read => reads(),
                PathUse::Edit => {
                    let edits = self
                        .find_for_any_form(&index.edits, forms)
                        .into_iter()
                        .chain(index.tools.find_restricted_name("Edit"));
                    // A rule against reading is also one against writing, because an edit shows content. NotebookEdit
                    // replaces cells without showing them.
                    let writes_unread = self.request.tool.has_name("NotebookEdit");
                    edits.chain(if writes_unread { None } else { reads() }).min()
                }
            }
        };
        let denied = find(&self.compiled.deny);
        let asked = find(&self.compiled.ask);
        let verb = match usage {
            PathUse::Read => "reading",
            PathUse::Edit => "writing",
        };
        if let Some(id) = denied {
            self.deny_by_rule(format!("{verb} `{path}` is denied by a rule"), id);
        }
        if let Some(id) = asked {
            self.ask_by_rule(format_args!("{verb} `{path}`"), id);
        }
    }
}

/// Whether every form is `/dev/null`, which stores nothing, or a redirect goes to the command's own output streams.
fn is_null_device(forms: &PathForms<'_>, origin: AccessOrigin) -> bool {
    let is_stream = matches!(&*forms.lexical, "/dev/stdout" | "/dev/stderr");
    (origin == AccessOrigin::Redirect && is_stream) || forms.all.iter().all(|form| form == "/dev/null")
}

/// A rule for exactly this path; `None` if the path cannot be written in a rule.
fn exact_path_rule(access: ReadOrWrite, path: &str) -> Option<String> {
    if path.chars().any(char::is_control) {
        return None;
    }
    let mut content = String::from("/");
    for c in path.chars() {
        if matches!(c, '*' | '?' | '[' | '\\') {
            content.push('\\');
        }
        content.push(c);
    }
    let name = match access {
        ReadOrWrite::Read => "Read",
        ReadOrWrite::Write => "Edit",
    };
    Some(syntax::write_rule(name, &content))
}
