//! Reads and writes: by a tool, by a redirect, by a command.
//!
//! A path is judged under every form it has: as spelled, with `..` removed by text, each link on the way, and where it
//! really leads. A deny or ask rule counts if any form fits; an allow rule only if the spelled and the real one do.

use super::evaluation::{ObjectionKind, PolicyCheck, PolicyEvaluation, ToolWideGrant};
use crate::facts::{EntryKind, PathFact};
use crate::fold::fold_path;
use crate::path_spelling;
use crate::protect::{ReadOrWrite, is_under, strip_workspace_roots};
use crate::raw::Enforcement;
use crate::rule::ActionIndex;
use crate::rule::grammar;
use crate::rule::path::{PathIndex, PathUse};
use crate::rule::segment::TraversalScope;
use std::borrow::Cow;
use toolgate_proto::{AbsPath, Code, Mode, PathScope, RiskLevel, VerdictReason, WriteKind};

/// Who touches a path, and so what may cover it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessOrigin {
    /// A tool by its own intent: a rule for the tool covers it.
    Tool,
    /// A redirect: only a rule for the path covers it.
    Redirect,
    /// A command that a rule or the mode covers: it may do what it does inside the workspace.
    Granted {
        /// The rule is for exactly this command, so it speaks of the path itself.
        exactly: bool,
    },
    /// A command that nothing covers yet: only what makes it stricter counts.
    Command,
}

/// The forms of one path.
struct PathForms<'p> {
    /// Every distinct form, the spelled one (without `..`) first.
    all: Vec<Cow<'p, str>>,
    lexical: Cow<'p, str>,
    real: Cow<'p, str>,
    fact: Option<&'p PathFact>,
}

impl PolicyEvaluation<'_> {
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
        // A spelling with `..` names what its text says once `..` is removed, and what the links make of it.
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

    /// The first deny or ask rule that fits any form.
    fn find_for_any_form(&self, index: &PathIndex, forms: &PathForms<'_>) -> Option<u32> {
        if index.is_empty() {
            return None;
        }
        forms.all.iter().filter_map(|form| index.find(&fold_path(form), &self.folded)).min()
    }

    /// Allow rules that fit the spelled and the real path: one for both, or one for each.
    fn find_for_both_forms(&self, indexes: &[&PathIndex], forms: &PathForms<'_>) -> Option<u32> {
        let find = |form: &str| indexes.iter().filter_map(|index| index.find(form, &self.exact)).min();
        let spelled = find(&forms.lexical)?;
        find(&forms.real).map(|real| spelled.min(real))
    }

    /// An allow rule for reading: one for editing implies it.
    fn find_read_rule(&self, forms: &PathForms<'_>) -> Option<u32> {
        let allow = &self.compiled.allow;
        let bare = ["Read", "Edit"].into_iter().filter_map(|name| allow.tools.find_name(name));
        self.find_for_both_forms(&[&allow.reads, &allow.edits], forms).into_iter().chain(bare).min()
    }

    fn find_edit_rule(&self, forms: &PathForms<'_>) -> Option<u32> {
        let allow = &self.compiled.allow;
        self.find_for_both_forms(&[&allow.edits], forms)
            .into_iter()
            .chain(allow.tools.find_name("Edit"))
            .min()
    }

    fn is_inside_workspace(&self, forms: &PathForms<'_>) -> bool {
        forms.fact.is_some_and(|fact| {
            fact.problem.is_none() && self.request.workspace.roots.iter().any(|root| fact.real.is_under(root))
        })
    }

    /// A read of one entry or of a tree.
    pub(crate) fn check_read(&mut self, path: &AbsPath, scope: PathScope, via: AccessOrigin) {
        let forms = self.path_forms(path);
        if self.is_null_device(&forms, via) {
            return;
        }
        let compiled = self.compiled;
        self.check_path_rules(path, &forms, PathUse::Read);
        let odd = self.check_path_form(path, &forms);
        if scope == PathScope::Tree && via != AccessOrigin::Tool {
            self.check_tree(path, &forms);
        }
        let secret = self.check_sensitive(&forms, ReadOrWrite::Read, via);
        if odd || secret {
            return;
        }
        let inside = self.is_inside_workspace(&forms);
        if inside && matches!(via, AccessOrigin::Tool | AccessOrigin::Redirect) {
            self.add_allow_reason("it only reads inside the workspace", None);
        }
        if inside {
            return;
        }
        if let Some(id) = self.find_read_rule(&forms) {
            self.add_allow_reason("a rule allows to read the path", Some(id));
            return;
        }
        if via == AccessOrigin::Tool
            && let Some(grant) = self.grant
        {
            self.add_grant_reason(grant);
            return;
        }
        let force = if compiled.block_reads_outside { ObjectionKind::Deny } else { ObjectionKind::ByDefault };
        self.add_outside_objection(path, force, "Read");
    }

    /// A change of a file or a tree.
    pub(crate) fn check_write(&mut self, path: &AbsPath, kind: WriteKind, via: AccessOrigin) {
        let forms = self.path_forms(path);
        if self.is_null_device(&forms, via) {
            return;
        }
        self.ask_in_plan_mode("a file would change");
        self.check_path_rules(path, &forms, PathUse::Edit);
        let odd = self.check_path_form(path, &forms);
        let guarded = self.check_protected(path, &forms) | self.check_removal(path, &forms, kind);
        let secret = self.check_sensitive(&forms, ReadOrWrite::Write, via);
        let shared = self.check_hard_link(path, &forms);
        if odd || guarded || secret || shared {
            return;
        }
        let inside = self.is_inside_workspace(&forms);
        let covered = match via {
            AccessOrigin::Tool => self.grant,
            AccessOrigin::Redirect => None,
            AccessOrigin::Granted { .. } if inside => return,
            // What the command may not do by itself is asked about once, as a command.
            AccessOrigin::Command if inside => return,
            AccessOrigin::Granted { .. } | AccessOrigin::Command => None,
        };
        if let Some(grant) = self.find_edit_rule(&forms).map(ToolWideGrant::Rule).or(covered) {
            self.add_grant_reason(grant);
            return;
        }
        if inside && self.mode == Mode::AcceptEdits {
            self.add_allow_reason("mode acceptEdits allows changes inside the workspace", None);
            return;
        }
        if inside {
            let suggestion = exact_path_rule("Edit", &forms.real);
            self.add_uncovered_objection(format!("no rule allows to change `{}`", forms.real), suggestion);
            return;
        }
        let force =
            if self.compiled.block_writes_outside { ObjectionKind::Deny } else { ObjectionKind::ByDefault };
        self.add_outside_objection(path, force, "Edit");
    }

    /// `/dev/null` holds nothing and keeps nothing; a command's output streams are its own.
    fn is_null_device(&self, forms: &PathForms<'_>, via: AccessOrigin) -> bool {
        let stream = matches!(&*forms.lexical, "/dev/stdout" | "/dev/stderr");
        (via == AccessOrigin::Redirect && stream) || forms.all.iter().all(|form| form == "/dev/null")
    }

    fn add_outside_objection(&mut self, path: &AbsPath, force: ObjectionKind, rule: &str) {
        let real = self.request.facts.get(path).map_or(path, |fact| &fact.real);
        let text = format!("`{real}` lies outside the workspace");
        let suggestion = exact_path_rule(rule, &real.to_string());
        self.add_objection(force, PolicyCheck::Grants, VerdictReason::new(Code::OutsideRoots, text));
        self.suggestions.extend(suggestion);
    }

    /// Deny and ask rules for the path.
    fn check_path_rules(&mut self, path: &AbsPath, forms: &PathForms<'_>, usage: PathUse) {
        let find = |index: &ActionIndex| {
            let reads = || {
                self.find_for_any_form(&index.reads, forms)
                    .into_iter()
                    .chain(index.tools.find_name("Read"))
                    .min()
            };
            match usage {
                PathUse::Read => reads(),
                PathUse::Edit => {
                    let edits = self
                        .find_for_any_form(&index.edits, forms)
                        .into_iter()
                        .chain(index.tools.find_name("Edit"));
                    // What is held back from reading is held back from changing; a notebook is changed cell by cell,
                    // unread.
                    let blind = self.request.tool.has_name("NotebookEdit");
                    edits.chain(if blind { None } else { reads() }).min()
                }
            }
        };
        let denied = find(&self.compiled.deny);
        let asked = find(&self.compiled.ask);
        let verb = match usage {
            PathUse::Read => "read",
            PathUse::Edit => "change",
        };
        if let Some(id) = denied {
            let text = format!("a rule denies to {verb} `{path}`");
            self.add_rule_objection(
                ObjectionKind::Deny,
                PolicyCheck::DenyRules,
                Code::DeniedByRule,
                text,
                id,
            );
        }
        if let Some(id) = asked {
            let text = format!("a rule wants a person to be asked before it may {verb} `{path}`");
            self.add_rule_objection(
                ObjectionKind::Explicit,
                PolicyCheck::AskRules,
                Code::NobodyToAsk,
                text,
                id,
            );
        }
    }

    /// What is wrong with the path itself; then nothing can cover it.
    fn check_path_form(&mut self, path: &AbsPath, forms: &PathForms<'_>) -> bool {
        let problem = match forms.fact {
            None => Some("it was not resolved".to_owned()),
            Some(fact) => fact.problem.clone(),
        };
        if let Some(problem) = problem {
            let text = format!("`{path}` cannot be judged: {problem}");
            self.add_objection(
                ObjectionKind::Explicit,
                PolicyCheck::Risks,
                VerdictReason::new(Code::UnresolvablePath, text),
            );
            return true;
        }
        let real = forms.fact.map(|fact| &fact.real);
        let odd =
            path_spelling::spelling_problem(path).or_else(|| real.and_then(path_spelling::spelling_problem));
        let odd =
            odd.or_else(|| path_spelling::is_not_utf8(path).then(|| "the path is not valid text".to_owned()));
        if let Some(odd) = odd {
            self.add_warning("path_spelling", RiskLevel::High, odd.clone());
            self.add_objection(
                ObjectionKind::Explicit,
                PolicyCheck::Risks,
                VerdictReason::new(Code::UnresolvablePath, odd),
            );
            return true;
        }
        // Shared memory is a directory of ordinary files that happens to lie among the devices.
        let magic = |form: &Cow<'_, str>| {
            ["/proc", "/sys", "/dev"].into_iter().any(|tree| is_under(form, tree))
                && !is_under(form, "/dev/shm")
        };
        let special = forms.fact.is_some_and(|fact| fact.kind == EntryKind::Special);
        if special || forms.all.iter().any(magic) {
            let text = format!("`{path}` is a device, a pipe, a socket or a window into a process");
            self.add_warning("special_file", RiskLevel::High, text.clone());
            self.add_objection(
                ObjectionKind::Explicit,
                PolicyCheck::Risks,
                VerdictReason::new(Code::ProtectedPath, text),
            );
            return true;
        }
        false
    }

    fn check_protected(&mut self, path: &AbsPath, forms: &PathForms<'_>) -> bool {
        let (guarded, workspace) = (&self.compiled.protection, self.request.workspace);
        let why = forms.all.iter().find_map(|form| guarded.protected_reason(&fold_path(form), workspace));
        let Some(why) = why else { return false };
        let text = format!("`{path}` is protected: {why}");
        self.add_warning("protected_path", RiskLevel::Critical, text.clone());
        self.add_objection(
            ObjectionKind::Explicit,
            PolicyCheck::Protected,
            VerdictReason::new(Code::ProtectedPath, text),
        );
        true
    }

    /// Removal or change of everything below a directory that holds the workspace or the home directory.
    fn check_removal(&mut self, path: &AbsPath, forms: &PathForms<'_>, kind: WriteKind) -> bool {
        let workspace = self.request.workspace;
        let held = workspace.roots.iter().chain([&workspace.cwd]).chain(&workspace.home);
        let holds = held.into_iter().any(|held| {
            let held = held.as_path().to_string_lossy();
            [&forms.lexical, &forms.real].into_iter().any(|form| is_under(&held, form))
        });
        let removes = matches!(kind, WriteKind::Tree | WriteKind::Delete);
        if !removes || !holds {
            return false;
        }
        let text = format!("everything below `{path}` would be removed or changed");
        self.add_warning("dangerous_removal", RiskLevel::Critical, text.clone());
        self.add_objection(
            ObjectionKind::Explicit,
            PolicyCheck::Protected,
            VerdictReason::new(Code::ProtectedPath, text),
        );
        true
    }

    fn check_sensitive(&mut self, forms: &PathForms<'_>, touch: ReadOrWrite, via: AccessOrigin) -> bool {
        let workspace = self.request.workspace;
        let why = forms.all.iter().find_map(|form| {
            self.compiled
                .protection
                .sensitive_reason(strip_workspace_roots(&fold_path(form), workspace), touch)
        });
        let Some(why) = why else { return false };
        self.add_warning("sensitive_path", RiskLevel::High, why.clone());
        if via == (AccessOrigin::Granted { exactly: true }) {
            return false;
        }
        let compiled = self.compiled;
        let frank = match touch {
            ReadOrWrite::Read => {
                self.find_for_both_forms(&[&compiled.sensitive_reads, &compiled.sensitive_edits], forms)
            }
            ReadOrWrite::Write => self.find_for_both_forms(&[&compiled.sensitive_edits], forms),
        };
        if let Some(id) = frank {
            self.add_allow_reason("a rule that speaks of the sensitive name allows it", Some(id));
            return false;
        }
        let rule = match touch {
            ReadOrWrite::Read => "Read",
            ReadOrWrite::Write => "Edit",
        };
        let suggestion = exact_path_rule(rule, &forms.real);
        self.add_objection(
            ObjectionKind::ByDefault,
            PolicyCheck::Risks,
            VerdictReason::new(Code::NobodyToAsk, why),
        );
        self.suggestions.extend(suggestion);
        true
    }

    /// The same file under another name may lie anywhere.
    fn check_hard_link(&mut self, path: &AbsPath, forms: &PathForms<'_>) -> bool {
        let shared = forms.fact.is_some_and(|fact| fact.hard_linked && fact.kind == EntryKind::File);
        if shared {
            let text = format!("`{path}` is the same file as another name somewhere else");
            self.add_warning("hard_link", RiskLevel::Medium, text.clone());
            self.add_objection(
                ObjectionKind::ByDefault,
                PolicyCheck::Risks,
                VerdictReason::new(Code::NobodyToAsk, text),
            );
        }
        shared
    }

    /// A command that reads a tree may show what a rule keeps back. The sandbox withholds it; that a rule was written
    /// for it is reason enough to ask all the same.
    fn check_tree(&mut self, path: &AbsPath, forms: &PathForms<'_>) {
        // Nothing lies below a file.
        if forms.fact.is_some_and(|fact| fact.kind == EntryKind::File && fact.problem.is_none()) {
            return;
        }
        if self.compiled.enforcement == Enforcement::Absent && !self.skips_hidden {
            let text = format!(
                "the command may show files below `{path}` that hold secrets, and nothing withholds them"
            );
            self.add_objection(
                ObjectionKind::ByDefault,
                PolicyCheck::Risks,
                VerdictReason::new(Code::NobodyToAsk, text),
            );
        }
        let dir = fold_path(&forms.real);
        let reach = if self.skips_hidden { TraversalScope::Visible } else { TraversalScope::All };
        let below = |index: &PathIndex| index.find_below(&dir, reach, &self.folded);
        let compiled = self.compiled;
        let found = below(&compiled.deny.reads).or_else(|| below(&compiled.ask.reads));
        if let Some(id) = found {
            let text = format!("the command may read something below `{path}` that a rule keeps back");
            self.add_rule_objection(
                ObjectionKind::ByDefault,
                PolicyCheck::Risks,
                Code::NobodyToAsk,
                text,
                id,
            );
        }
    }
}

/// A rule for exactly this path.
fn exact_path_rule(rule: &str, path: &str) -> Option<String> {
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
    Some(grammar::write_rule(rule, &content))
}
