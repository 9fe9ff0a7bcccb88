//! Risks of a path access that an allow rule does not cover: paths that cannot be resolved, unusual spellings, special
//! files, protected and sensitive names, hard links, the removal of whole trees.

use super::evaluation::PolicyEvaluation;
use super::objection::{ObjectionKind, PolicyCheck};
use super::paths::{AccessOrigin, PathForms};
use super::question::SENSITIVE_PATH_WARNING;
use crate::fold::fold_path;
use crate::path_spelling::{is_not_utf8, path_spelling_problem};
use crate::protect::{ReadOrWrite, is_under, strip_workspace_roots};
use crate::raw::Enforcement;
use crate::rule::path_index::PathIndex;
use crate::rule::segment::TraversalScope;
use std::borrow::Cow;
use toolgate_proto::{AbsPath, Code, EntryKind, PathScope, RiskLevel, VerdictReason, WriteKind};

impl PolicyEvaluation<'_> {
    /// The risks of a read. Returns whether one was found that no allow rule can cover.
    pub(super) fn check_read_risks(
        &mut self,
        path: &AbsPath,
        forms: &PathForms<'_>,
        scope: PathScope,
        origin: AccessOrigin,
    ) -> bool {
        let is_unusual = self.check_path_form(path, forms);
        if scope == PathScope::Tree && origin != AccessOrigin::Tool {
            self.check_tree(path, forms);
        }
        self.check_sensitive(forms, ReadOrWrite::Read, origin) || is_unusual
    }

    /// The risks of a write. Returns whether one was found that no allow rule can cover.
    pub(super) fn check_write_risks(
        &mut self,
        path: &AbsPath,
        forms: &PathForms<'_>,
        kind: WriteKind,
        origin: AccessOrigin,
    ) -> bool {
        let is_unusual = self.check_path_form(path, forms);
        let is_protected = self.check_protected(path, forms) | self.check_removal(path, forms, kind);
        let is_sensitive = self.check_sensitive(forms, ReadOrWrite::Write, origin);
        self.check_hard_link(path, forms) || is_unusual || is_protected || is_sensitive
    }

    /// A path that was not resolved, is spelled in an unusual way, or is not an ordinary file.
    fn check_path_form(&mut self, path: &AbsPath, forms: &PathForms<'_>) -> bool {
        let unresolved = match forms.fact {
            None => Some(format!("`{path}` was not resolved before the decision")),
            Some(fact) => {
                fact.problem.as_ref().map(|problem| format!("`{path}` cannot be resolved: {problem}"))
            }
        };
        if let Some(text) = unresolved {
            self.ask_about_path_form(Code::UnresolvablePath, text);
            return true;
        }
        let real = forms.fact.map(|fact| &fact.real);
        let spelling = path_spelling_problem(path)
            .or_else(|| real.and_then(path_spelling_problem))
            .or_else(|| is_not_utf8(path).then(|| "the path is not valid UTF-8".to_owned()));
        if let Some(text) = spelling {
            self.add_warning("path_spelling", RiskLevel::High, text.clone());
            self.ask_about_path_form(Code::UnresolvablePath, text);
            return true;
        }
        // `/dev/shm` contains ordinary files, although it is below `/dev`.
        let is_kernel_file = |form: &Cow<'_, str>| {
            ["/proc", "/sys", "/dev"].into_iter().any(|tree| is_under(form, tree))
                && !is_under(form, "/dev/shm")
        };
        let is_special = forms.fact.is_some_and(|fact| fact.kind == EntryKind::Special);
        if is_special || forms.all.iter().any(is_kernel_file) {
            let text = format!("`{path}` is a device, pipe, socket or kernel file, not an ordinary file");
            self.add_warning("special_file", RiskLevel::High, text.clone());
            self.ask_about_path_form(Code::ProtectedPath, text);
            return true;
        }
        false
    }

    /// A path whose form requires approval, with the code of a later refusal.
    fn ask_about_path_form(&mut self, code: Code, text: String) {
        let reason = VerdictReason::new(code, text);
        self.add_objection(ObjectionKind::Explicit, PolicyCheck::Risks, reason);
    }

    /// A write to a protected path under any of its forms.
    fn check_protected(&mut self, path: &AbsPath, forms: &PathForms<'_>) -> bool {
        let (protection, workspace) = (&self.compiled.protection, self.request.workspace);
        let why = forms.all.iter().find_map(|form| protection.protected_reason(&fold_path(form), workspace));
        let Some(why) = why else { return false };
        let text = format!("`{path}` is protected: {why}");
        self.add_warning("protected_path", RiskLevel::Critical, text.clone());
        self.ask_about_protected(text);
        true
    }

    /// The removal or change of everything below a directory that contains the workspace or the home directory.
    fn check_removal(&mut self, path: &AbsPath, forms: &PathForms<'_>, kind: WriteKind) -> bool {
        let workspace = self.request.workspace;
        let mut kept = workspace.roots.iter().chain([&workspace.cwd]).chain(&workspace.home);
        let contains_kept = kept.any(|kept| {
            let kept = kept.as_path().to_string_lossy();
            [&forms.lexical, &forms.real].into_iter().any(|form| is_under(&kept, form))
        });
        let removes = matches!(kind, WriteKind::Tree | WriteKind::Delete);
        if !removes || !contains_kept {
            return false;
        }
        let text = format!(
            "everything below `{path}` would be removed or changed, including the workspace or the home directory"
        );
        self.add_warning("dangerous_removal", RiskLevel::Critical, text.clone());
        self.object_to_danger(RiskLevel::Critical, text, true);
        true
    }

    /// Why one form of a path may hold secrets.
    fn sensitive_form_reason(&self, form: &str, access: ReadOrWrite) -> Option<String> {
        let folded = fold_path(form);
        let path = strip_workspace_roots(&folded, self.request.workspace);
        self.compiled.protection.sensitive_reason(path, access)
    }

    /// The forms of a sensitive path that allow rules must match: as written, the target, and a symlink between them if
    /// it alone has a sensitive name. Each is given with whether a rule must name it.
    fn named_forms<'f>(&self, forms: &'f PathForms<'_>, access: ReadOrWrite) -> Vec<(&'f str, bool)> {
        let is_sensitive = |form: &str| self.sensitive_form_reason(form, access).is_some();
        let mut named: Vec<(&str, bool)> = vec![(&forms.lexical, is_sensitive(&forms.lexical))];
        if forms.real != forms.lexical {
            named.push((&forms.real, is_sensitive(&forms.real)));
        }
        if named.iter().all(|(_, is_sensitive)| !is_sensitive) {
            let links = forms.all.iter().filter(|form| is_sensitive(form));
            named.extend(links.map(|form| (&**form, true)));
        }
        named
    }

    /// The allow rules for a sensitive path: one that names each form with a sensitive name, and any for each other form,
    /// such as a symlink `notes` to `.env`.
    fn find_naming_rule(&self, named: &[(&str, bool)], access: ReadOrWrite) -> Option<u32> {
        let (exact, compiled) = (&self.exact, self.compiled);
        let find = |(form, is_sensitive): &(&str, bool)| {
            compiled.allow_rules().find_map(|allow| {
                let (reads, edits) = match is_sensitive {
                    true => (&allow.sensitive_reads, &allow.sensitive_edits),
                    false => (&allow.index.reads, &allow.index.edits),
                };
                let read = match access {
                    ReadOrWrite::Read => reads.find(form, exact),
                    ReadOrWrite::Write => None,
                };
                read.into_iter().chain(edits.find(form, exact)).min()
            })
        };
        let found: Option<Vec<u32>> = named.iter().map(find).collect();
        found?.into_iter().min()
    }

    /// A file that may hold secrets asks, unless an allow rule names it.
    fn check_sensitive(&mut self, forms: &PathForms<'_>, access: ReadOrWrite, origin: AccessOrigin) -> bool {
        let why = forms.all.iter().find_map(|form| self.sensitive_form_reason(form, access));
        let Some(why) = why else { return false };
        self.add_warning(SENSITIVE_PATH_WARNING, RiskLevel::High, why.clone());
        if origin == (AccessOrigin::Granted { exactly: true }) {
            return false;
        }
        let named = self.named_forms(forms, access);
        if let Some(id) = self.find_naming_rule(&named, access) {
            self.add_allow_reason("a rule that names the sensitive file allows it", Some(id));
            return false;
        }
        self.ask_about_risk(ObjectionKind::ByDefault, why);
        self.suggest_rules_for_forms(access, named.into_iter().map(|(form, _)| form));
        true
    }

    /// A write to a file with several hard links also changes it under its other names, which may be anywhere.
    fn check_hard_link(&mut self, path: &AbsPath, forms: &PathForms<'_>) -> bool {
        let is_hard_linked = forms.fact.is_some_and(|fact| fact.hard_linked && fact.kind == EntryKind::File);
        if is_hard_linked {
            let text = format!("`{path}` has other hard links, which may be outside the workspace");
            self.add_warning("hard_link", RiskLevel::Medium, text.clone());
            self.ask_about_risk(ObjectionKind::ByDefault, text);
        }
        is_hard_linked
    }

    /// A command that reads a tree may show files that a rule denies or asks about. The sandbox withholds them; that
    /// the user wrote a rule for them is reason enough to ask all the same.
    fn check_tree(&mut self, path: &AbsPath, forms: &PathForms<'_>) {
        if forms.fact.is_some_and(|fact| fact.kind == EntryKind::File && fact.problem.is_none()) {
            return;
        }
        if self.compiled.enforcement == Enforcement::Absent && !self.skips_hidden {
            let text = format!(
                "the command may show files with secrets below `{path}`, and there is no sandbox to withhold them"
            );
            self.ask_about_risk(ObjectionKind::ByDefault, text);
        }
        let directory = fold_path(&forms.real);
        let scope = if self.skips_hidden { TraversalScope::Visible } else { TraversalScope::All };
        let find_below = |index: &PathIndex| index.find_below(&directory, scope, &self.folded);
        let compiled = self.compiled;
        let found = find_below(&compiled.deny.reads).or_else(|| find_below(&compiled.ask.reads));
        if let Some(id) = found {
            let text = format!("the command may read files below `{path}` that a rule denies or asks about");
            self.add_rule_objection(
                ObjectionKind::ByDefault,
                PolicyCheck::Risks,
                Code::ApprovalUnavailable,
                text,
                id,
            );
        }
    }
}
