//! The rights of a command: what the kernel will permit, derived from the effects that were judged.
//!
//! A line whose commands all only read, or write only known paths, gets the rights for exactly those paths. A line that
//! a rule, a mode or an approver allowed as a whole gets the workspace, because its effects are not fully known.
//! The sandbox enforces the rights either way, so an error of the analysis becomes a failed command instead of an
//! access that was not judged.
//!
//! | level | read | write | execute | network |
//! |---|---|---|---|---|
//! | read-only | workspace and named paths | nothing | listed programs | none |
//! | named writes | workspace and named paths | named paths | listed programs | none |
//! | workspace | everything that is not withheld | workspace and named paths | any program | allowed hosts |

use super::evaluation::PolicyEvaluation;
use crate::compile::CompiledPolicy;
use crate::guard::GuardScope;
use std::collections::BTreeSet;
use toolgate_proto::{AbsPath, CommandRights, Effect, Mode, PathScope, RightsLevel, WriteKind, WriteRight};
use toolgate_shell_syntax::{CommandAnalysis, CommandPart, InferredEffect};

/// [`GuardScope::hides`] or [`GuardScope::protects`].
type GuardPredicate = fn(&GuardScope, &CompiledPolicy, &AbsPath) -> bool;

/// What the rights of a command line are derived from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RightsBasis {
    /// An approver allowed the line as a whole.
    AsWhole,
    /// Each command was covered: by its effects, or by a rule, which [`PolicyEvaluation::covered_as_whole`] records.
    ByEffects,
}

impl PolicyEvaluation<'_> {
    /// The rights of the commands of this call.
    pub(crate) fn rights(&self, basis: RightsBasis) -> CommandRights {
        let survey = self.request.survey;
        if survey.commands.is_empty() {
            return CommandRights::none();
        }
        let is_doubtful = survey.commands.iter().any(|command| command.analysis.doubt.is_some());
        let inferred: Vec<&InferredEffect> = survey.inferred_effects().collect();
        let mut rights = if basis == RightsBasis::AsWhole || self.has_workspace_rights() || is_doubtful {
            self.workspace_rights(&inferred)
        } else {
            let write = self.write_rights(&inferred);
            let mut rights = CommandRights::none();
            rights.level = if write.is_empty() { RightsLevel::ReadOnly } else { RightsLevel::NamedWrites };
            rights.read = Some(self.read_rights(&inferred));
            rights.write = write;
            rights.execute = Some(programs(survey.commands.iter().map(|command| &command.analysis)));
            rights
        };
        rights.named = self.named_paths(&inferred);
        rights
    }

    /// Whether a command is allowed whatever it does. In mode plan a rule makes a command no more than a reader: what only
    /// reads needs no right to write.
    pub(crate) fn has_workspace_rights(&self) -> bool {
        self.covered_as_whole && self.mode != Mode::Plan
    }

    /// The rights of a line that was allowed as a whole: the workspace, and known writes outside of it.
    fn workspace_rights(&self, inferred: &[&InferredEffect]) -> CommandRights {
        let roots = &self.request.workspace.roots;
        let mut rights = CommandRights::for_workspace(roots);
        let is_writing_git = |part: &CommandPart| {
            part.program
                .as_deref()
                .is_some_and(|program| !part.read_only && program.rsplit('/').next() == Some("git"))
        };
        rights.git_data = self.request.survey.parts().any(is_writing_git);
        let is_inside = |right: &WriteRight| roots.iter().any(|root| right.path.is_under(root));
        let writes = self.write_rights(inferred);
        rights.write.extend(writes.into_iter().filter(|right| !is_inside(right)));
        rights
    }

    /// The workspace, and the paths outside of it that the effects name.
    fn read_rights(&self, inferred: &[&InferredEffect]) -> Vec<AbsPath> {
        let mut paths: BTreeSet<AbsPath> = self.request.workspace.roots.iter().cloned().collect();
        paths.extend(self.request.survey.parts().flat_map(|part| &part.looks_in).cloned());
        let named = inferred.iter().filter_map(|inferred| inferred.effect.path());
        paths.extend(named.filter_map(|path| self.resolved_path(path)));
        let all: Vec<AbsPath> = paths.iter().cloned().collect();
        // A path below another one that is granted needs no right of its own.
        paths.retain(|path| !all.iter().any(|other| other != path && path.is_under(other)));
        paths.into_iter().collect()
    }

    /// The paths that the effects write, as far as they are known.
    fn write_rights(&self, inferred: &[&InferredEffect]) -> Vec<WriteRight> {
        let mut out: Vec<WriteRight> = Vec::new();
        let mut add = |path: AbsPath, scope: PathScope| {
            let right = WriteRight::new(path, scope);
            if !out.contains(&right) {
                out.push(right);
            }
        };
        let is_inside = |path: &AbsPath| self.request.workspace.roots.iter().any(|root| path.is_under(root));
        let may_write = |path: &AbsPath| {
            path.as_path() != std::path::Path::new("/dev/null")
                && (!self.answered_by_default || is_inside(path))
        };
        for inferred in inferred {
            let Effect::Write { path, kind } = &inferred.effect else { continue };
            let scope = match kind {
                WriteKind::Tree => PathScope::Tree,
                WriteKind::Put | WriteKind::Edit | WriteKind::Delete => PathScope::Entry,
            };
            self.links_at(path).filter(may_write).for_each(|link| add(link, PathScope::Entry));
            let Some(real) = self.resolved_path(path).filter(may_write) else { continue };
            if let Some(glob) = &inferred.glob {
                match self.request.facts.glob(glob) {
                    Some(matches) => {
                        for path in matches {
                            self.links_at(path)
                                .filter(may_write)
                                .for_each(|link| add(link, PathScope::Entry));
                            let real = self.resolved_path(path).filter(may_write);
                            real.into_iter().for_each(|real| add(real, scope));
                        }
                    }
                    // The shell expands the glob at run time: any file below the directory may match.
                    None => add(real, PathScope::Tree),
                }
                continue;
            }
            for entry in &inferred.entries {
                // An entry that is moved or copied into a directory may be a tree.
                add(real.join(entry), PathScope::Tree);
            }
            add(real, scope);
        }
        out
    }

    /// Paths that the command line names and that are withheld or protected by default. Judging the line included them,
    /// so the guard lets the command access them.
    fn named_paths(&self, inferred: &[&InferredEffect]) -> Vec<AbsPath> {
        let scope = GuardScope::new(self.request.workspace, &CommandRights::none());
        let mut out: Vec<AbsPath> = Vec::new();
        for inferred in inferred.iter().filter(|inferred| inferred.glob.is_none()) {
            let Some(path) = inferred.effect.path() else { continue };
            let is_write = matches!(inferred.effect, Effect::Write { .. });
            let is_restricted: GuardPredicate =
                if is_write { GuardScope::protects } else { GuardScope::hides };
            let entries = inferred.entries.iter().map(|entry| path.join(entry));
            for path in entries.chain([path.clone()]) {
                let real = self.resolved_path(&path).unwrap_or_else(|| path.lexical());
                if is_restricted(&scope, self.compiled, &real) && !out.contains(&real) {
                    out.push(real);
                }
            }
        }
        out
    }

    /// The symlinks with the name of the path: to remove or replace that name changes them, and not what they lead to.
    /// They were judged with the path.
    fn links_at(&self, path: &AbsPath) -> impl Iterator<Item = AbsPath> {
        let name = path.as_path().file_name();
        let fact = self.request.facts.get(path).filter(|fact| fact.problem.is_none());
        let links = fact.into_iter().flat_map(|fact| &fact.links);
        links.filter(move |link| link.as_path().file_name() == name).cloned()
    }

    /// The real path, if it was resolved without a problem.
    fn resolved_path(&self, path: &AbsPath) -> Option<AbsPath> {
        self.request.facts.get(path).filter(|fact| fact.problem.is_none()).map(|fact| fact.real.clone())
    }
}

/// Every program that the lines may start, as spelled there.
fn programs<'a>(analyses: impl Iterator<Item = &'a CommandAnalysis>) -> Vec<String> {
    let names: BTreeSet<String> = analyses.flat_map(CommandAnalysis::programs).collect();
    names.into_iter().collect()
}
