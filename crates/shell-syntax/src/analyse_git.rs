//! Analyses `git` by its subcommand, and adds the files whose content it shows.
//!
//! git runs programs that the configuration of a repository names. A subcommand is read-only only in the directory in
//! which the line starts, whose repository the runtime has checked.

use crate::analysis::{DangerKind, EffectOrigin};
use crate::command_part::{CommandPartBuilder, inferred_effect};
use crate::option_tables::{ProgramUse, git};
use crate::shell_arg::ShellArg;
use crate::visitor::{AnalysisVisitor, CommandContext};
use toolgate_proto::{Effect, PathScope, RiskLevel};

impl AnalysisVisitor<'_> {
    /// Analyses the arguments of `git`. `is_system`: the program is the installed one, not another of that name.
    ///
    /// The spelling without global options is added for rules that deny: `git -C x push` is also `git push`.
    pub(crate) fn analyse_git(
        &mut self,
        builder: &mut CommandPartBuilder,
        args: &[ShellArg],
        is_system: bool,
        context: &CommandContext<'_>,
    ) {
        let judged = git::judge_git(args);
        if let Some(at) = judged.subcommand
            && at > 0
        {
            let words: Vec<&str> = std::iter::once("git")
                .chain(args.get(at..).unwrap_or_default().iter().map(|arg| arg.text.as_str()))
                .collect();
            builder.add_deny_text(words.join(" "));
        }
        let mut read_only = judged.used.read_only && is_system;
        if judged.used.hazard {
            self.warn(DangerKind::UnusualOption, RiskLevel::High, || {
                format!("`{}` has an option that can run a program or write a file", builder.part.text)
            });
        }
        if read_only && !context.dirs.is_only(self.start) {
            read_only = false;
            self.warn(DangerKind::Directory, RiskLevel::Medium, || {
                "git runs in another directory, which may be another repository".to_owned()
            });
        }
        builder.part.git_reader = read_only;
        let known = judged.used.read_only;
        let shows = judged.shows;
        let used =
            ProgramUse { reads: judged.used.reads.into_iter().chain(shows.here).collect(), ..judged.used };
        self.apply_program_use(builder, used, args, context);
        self.add_git_reads(builder, shows.whole_repository, &shows.top, context);
        // The sandbox limits which paths are read, but the object database contains every file of the repository.
        if builder.part.reads_unknown_paths || args.iter().any(|arg| !arg.one_of.is_empty()) {
            builder.part.reads_unknown_paths = false;
            builder.part.unknown_effects = true;
            builder.coverable = false;
        }
        builder.part.read_only = read_only && !builder.part.unknown_effects;
        builder.part.unknown_effects |= !known;
    }

    /// Adds the reads of files that git shows by their path from the top of the repository.
    ///
    /// The top is the working directory or one above it; which one is not known without looking at files. Each
    /// directory up to the root of the workspace is a candidate; a read-only git does not run in a repository
    /// whose top is outside.
    fn add_git_reads(
        &mut self,
        builder: &mut CommandPartBuilder,
        whole: bool,
        top: &[(String, PathScope)],
        context: &CommandContext<'_>,
    ) {
        let start = [self.start.clone()];
        let dirs = if context.dirs.is_unknown() { &start[..] } else { context.dirs.all() };
        for dir in dirs {
            let dir = dir.lexical();
            let root = self.workspace.roots.iter().filter(|root| dir.is_under(root));
            let root = root.min_by_key(|root| root.as_path().as_os_str().len()).unwrap_or(&dir);
            if whole {
                let effect = Effect::Read { path: root.clone(), scope: PathScope::Tree };
                builder.part.effects.push(inferred_effect(effect, EffectOrigin::Program));
            }
            let mut above = Some(dir.clone());
            while let Some(candidate) = above.filter(|candidate| candidate.is_under(root)) {
                for (path, scope) in top {
                    let effect = Effect::Read { path: candidate.join(path), scope: *scope };
                    builder.part.effects.push(inferred_effect(effect, EffectOrigin::Argument));
                }
                above = candidate.parent();
            }
        }
    }
}
