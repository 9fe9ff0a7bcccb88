//! The rights of a command: what the kernel will permit, cut from the effects that were judged.
//!
//! A line of which every command was found to only read, or to write only known paths, gets the rights for exactly
//! that. A line that a rule, a mode or a person allowed as a whole gets the workspace: what it does was not foreseen.
//! Either way the sandbox enforces the rights, so that an error of the analysis is a failed command.

use super::evaluation::PolicyEvaluation;
use crate::compile::CompiledPolicy;
use crate::guard::GuardScope;
use std::collections::BTreeSet;
use toolgate_proto::{AbsPath, CommandRights, Effect, PathScope, RightsLevel, WriteKind, WriteRight};
use toolgate_shell_syntax::{CommandAnalysis, InferredEffect};

/// Whether a path is kept from a command by default.
type GuardPredicate = fn(&GuardScope, &CompiledPolicy, &AbsPath) -> bool;

/// Whether a line was allowed as a whole, or command by command for what each was found to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RightsBasis {
    /// A rule, a mode, a hook or a person answered for the line.
    AsWhole,
    /// Each command was covered by what the analysis found.
    ByEffects,
}

impl PolicyEvaluation<'_> {
    /// The rights of the commands of this call.
    pub(crate) fn rights(&self, allowed: RightsBasis) -> CommandRights {
        let analyses: Vec<&CommandAnalysis> =
            self.request.survey.commands.iter().map(|command| &command.analysis).collect();
        if analyses.is_empty() {
            return CommandRights::none();
        }
        let whole = allowed == RightsBasis::AsWhole
            || self.covered_as_whole
            || analyses.iter().any(|analysis| analysis.doubt.is_some());
        let inferred: Vec<&InferredEffect> =
            analyses.iter().flat_map(|analysis| &analysis.parts).flat_map(|part| &part.effects).collect();
        let mut rights =
            if whole {
                let mut rights = CommandRights::for_workspace(&self.request.workspace.roots);
                rights.git_data = analyses.iter().flat_map(|analysis| &analysis.parts).any(|part| {
                    part.program
                        .as_deref()
                        .is_some_and(|program| !part.read_only && program.rsplit('/').next() == Some("git"))
                });
                rights.write.extend(self.write_rights(&inferred).into_iter().filter(|right| {
                    !self.request.workspace.roots.iter().any(|root| right.path.is_under(root))
                }));
                rights
            } else {
                let write = self.write_rights(&inferred);
                CommandRights {
                    level: if write.is_empty() { RightsLevel::ReadOnly } else { RightsLevel::NamedWrites },
                    read: Some(self.read_rights(&inferred, &analyses)),
                    write,
                    execute: Some(programs(&analyses)),
                    named: Vec::new(),
                    git_data: false,
                }
            };
        rights.named = self.named_paths(&inferred);
        rights
    }

    /// The workspace, and what the effects name outside of it.
    fn read_rights(&self, inferred: &[&InferredEffect], analyses: &[&CommandAnalysis]) -> Vec<AbsPath> {
        let mut paths: BTreeSet<AbsPath> = self.request.workspace.roots.iter().cloned().collect();
        let parts = analyses.iter().flat_map(|analysis| &analysis.parts);
        paths.extend(parts.flat_map(|part| &part.looks_in).cloned());
        for inferred in inferred {
            match &inferred.effect {
                Effect::Read { path, .. } | Effect::Write { path, .. } => {
                    paths.extend(self.certain_real_path(path))
                }
                Effect::Exec { .. }
                | Effect::Fetch { .. }
                | Effect::Search { .. }
                | Effect::Delegate { .. }
                | Effect::Skill { .. }
                | Effect::Remote { .. }
                | Effect::Ask
                | Effect::State { .. }
                | Effect::Opaque => {}
            }
        }
        let all: Vec<AbsPath> = paths.iter().cloned().collect();
        // What lies below another granted path needs no right of its own.
        paths.retain(|path| !all.iter().any(|other| other != path && path.is_under(other)));
        paths.into_iter().collect()
    }

    fn write_rights(&self, inferred: &[&InferredEffect]) -> Vec<WriteRight> {
        let mut out: Vec<WriteRight> = Vec::new();
        let mut add = |path: AbsPath, scope: PathScope| {
            let right = WriteRight { path, scope };
            if !out.contains(&right) {
                out.push(right);
            }
        };
        for inferred in inferred {
            let Effect::Write { path, kind } = &inferred.effect else { continue };
            let Some(real) = self.certain_real_path(path) else { continue };
            let inside = self.request.workspace.roots.iter().any(|root| real.is_under(root));
            if real.as_path() == std::path::Path::new("/dev/null") || self.answered_by_default && !inside {
                continue;
            }
            let scope = match kind {
                WriteKind::Tree => PathScope::Tree,
                WriteKind::Put | WriteKind::Edit | WriteKind::Delete => PathScope::Entry,
            };
            if let Some(glob) = &inferred.glob {
                match self.request.facts.glob(glob) {
                    Some(matches) => {
                        for path in matches.iter().filter_map(|path| self.certain_real_path(path)) {
                            add(path, scope);
                        }
                    }
                    // Which files the pattern names is known when the shell expands it.
                    None => add(real, PathScope::Tree),
                }
                continue;
            }
            for entry in &inferred.entries {
                // What is moved or copied into a directory may be a tree.
                add(real.join(entry), PathScope::Tree);
            }
            add(real, scope);
        }
        out
    }

    /// Paths that were granted by name although they are kept back by default.
    fn named_paths(&self, inferred: &[&InferredEffect]) -> Vec<AbsPath> {
        let scope = GuardScope::new(self.request.workspace, &CommandRights::none());
        let mut out: Vec<AbsPath> = Vec::new();
        for inferred in inferred.iter().filter(|inferred| inferred.glob.is_none()) {
            let (path, kept) = match &inferred.effect {
                Effect::Read { path, .. } => (path, GuardScope::hides as GuardPredicate),
                Effect::Write { path, .. } => (path, GuardScope::protects as GuardPredicate),
                Effect::Exec { .. }
                | Effect::Fetch { .. }
                | Effect::Search { .. }
                | Effect::Delegate { .. }
                | Effect::Skill { .. }
                | Effect::Remote { .. }
                | Effect::Ask
                | Effect::State { .. }
                | Effect::Opaque => continue,
            };
            let entries = inferred.entries.iter().map(|entry| path.join(entry));
            for path in entries.chain([path.clone()]) {
                let real = self.certain_real_path(&path).unwrap_or_else(|| path.lexical());
                if kept(&scope, self.compiled, &real) && !out.contains(&real) {
                    out.push(real);
                }
            }
        }
        out
    }

    /// Where a path leads, if that is known for certain.
    fn certain_real_path(&self, path: &AbsPath) -> Option<AbsPath> {
        self.request.facts.get(path).filter(|fact| fact.problem.is_none()).map(|fact| fact.real.clone())
    }
}

/// Every program that the lines may start.
fn programs(analyses: &[&CommandAnalysis]) -> Vec<String> {
    let names: BTreeSet<String> = analyses.iter().flat_map(|analysis| analysis.programs()).collect();
    names.into_iter().collect()
}
