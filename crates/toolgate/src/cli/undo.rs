//! `toolgate undo` and `toolgate redo`: taking back what calls changed in files, and making it again.
//!
//! Without more, the last call that changed something in this workspace is meant: the journal is one for all
//! workspaces, and nobody wants a file to change in a project they are not looking at.
//! A person does this, not a model, so no rule is asked; what stands in the way is only the work of somebody else.

use super::args::UndoArgs;
use super::context::CliContext;
use super::log::{format_time, short_session_id};
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use toolgate::render::escape_invisible;
use toolgate::{AbsPath, CallId};
use toolgate_files::{
    ChangeState, ConflictHandling, FileRestore, Journal, JournalChange, JournalLimits, UndoConflict,
    UndoFilter, UndoProblem, UndoSelector,
};
use toolgate_proto::SessionId;
use toolgate_tools::{count_changed_lines, unified_diff};

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UndoDirection {
    /// Back to what was before.
    Undo,
    /// Forward again.
    Redo,
}

/// The words for a way.
struct UndoWording {
    verb: &'static str,
    done: &'static str,
    other: &'static str,
    /// Changes in this state can be moved over.
    source_state: ChangeState,
}

impl UndoDirection {
    fn wording(self) -> UndoWording {
        match self {
            Self::Undo => {
                UndoWording { verb: "undo", done: "undid", other: "redo", source_state: ChangeState::Done }
            }
            Self::Redo => {
                UndoWording { verb: "redo", done: "redid", other: "undo", source_state: ChangeState::Undone }
            }
        }
    }
}

pub(crate) fn run(
    world: &CliContext,
    args: &UndoArgs,
    way: UndoDirection,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let dir = world.journal_dir().ok_or_else(|| {
        CliError::Usage(
            "nothing is remembered: there is no home directory; set TOOLGATE_STATE_DIR".to_owned(),
        )
    })?;
    let journal = Journal::open(&dir, JournalLimits::default())
        .map_err(|problem| CliError::Usage(format!("{dir} cannot be used: {problem}")))?;
    let desk = UndoCommand { context: world, args, wording: way.wording(), direction: way, journal, out };
    desk.run()
}

struct UndoCommand<'a> {
    context: &'a CliContext,
    args: &'a UndoArgs,
    wording: UndoWording,
    direction: UndoDirection,
    journal: Journal,
    out: &'a mut CliOutput,
}

impl UndoCommand<'_> {
    fn run(mut self) -> Result<CliExitCode, CliError> {
        let changes = self.journal.list().map_err(|problem| CliError::Usage(problem.to_string()))?;
        let roots = self.roots();
        if self.args.list {
            return self.list(&changes, &roots);
        }
        let which = self.select_changes(&changes, &roots)?;
        let how = if self.args.force { ConflictHandling::Overwrite } else { ConflictHandling::Refuse };
        let told = if self.args.dry_run {
            let plan = match self.direction {
                UndoDirection::Undo => self.journal.plan_undo(&which),
                UndoDirection::Redo => self.journal.plan_redo(&which),
            };
            plan.map(|plan| (plan.calls, plan.restores, plan.conflicts))
        } else {
            let moved = match self.direction {
                UndoDirection::Undo => self.journal.undo(&which, how),
                UndoDirection::Redo => self.journal.redo(&which, how),
            };
            moved.map(|moved| (moved.calls, moved.restores, Vec::new()))
        };
        match told {
            Ok((calls, restores, conflicts)) => self.print_outcome(&calls, &restores, &conflicts),
            Err(problem) => self.print_refusal(problem, &changes, &roots),
        }
    }

    /// Where the last call is looked for; empty for everywhere.
    fn roots(&self) -> Vec<AbsPath> {
        if self.args.everywhere {
            return Vec::new();
        }
        let added = self.context.global.add_dir.iter().map(|dir| self.context.ambient.absolute_path(dir));
        let dirs = std::iter::once(self.context.cwd()).chain(added);
        dirs.map(|dir| toolgate_files::resolve(&dir).real).collect()
    }

    fn select_changes(&self, changes: &[JournalChange], roots: &[AbsPath]) -> Result<UndoSelector, CliError> {
        let session = match &self.args.session {
            Some(part) => {
                Some(find_unique_id("session", part, changes.iter().map(|change| change.session.as_str()))?)
            }
            None => None,
        };
        let session = session.map(SessionId::new);
        if let Some(part) = &self.args.call {
            let mine =
                |change: &&JournalChange| session.as_ref().is_none_or(|session| *session == change.session);
            let call =
                find_unique_id("call", part, changes.iter().filter(mine).map(|change| change.call.as_str()))?;
            let sessions: BTreeSet<&str> = changes
                .iter()
                .filter(|change| change.call.as_str() == call)
                .map(|change| change.session.as_str())
                .collect();
            if session.is_none() && sessions.len() > 1 {
                let names: Vec<String> = sessions.iter().map(|name| format!("`{name}`")).collect();
                return Err(CliError::Usage(format!(
                    "{} sessions have a call `{call}`; add --session with one of {}",
                    names.len(),
                    names.join(", ")
                )));
            }
            return Ok(UndoSelector::Call(CallId::new(call), session));
        }
        let among = |session: Option<SessionId>| {
            let beneath = if session.is_some() { Vec::new() } else { roots.to_vec() };
            UndoFilter { session, beneath }
        };
        Ok(match (self.args.steps, session) {
            (Some(steps), session) => UndoSelector::Steps(steps, among(session)),
            (None, Some(session)) => UndoSelector::Session(session),
            (None, None) => UndoSelector::Last(among(None)),
        })
    }

    fn print_outcome(
        &mut self,
        calls: &[(SessionId, CallId)],
        restores: &[FileRestore],
        conflicts: &[UndoConflict],
    ) -> Result<CliExitCode, CliError> {
        let dry = self.args.dry_run;
        let stopped = conflicts.iter().any(|conflict| !(self.args.force && conflict.forcible));
        let exit = if stopped { CliExitCode::ToolFailed } else { CliExitCode::Ok };
        if self.context.global.json {
            let calls: Vec<Value> =
                calls.iter().map(|(session, call)| json!({ "session": session, "call": call })).collect();
            let files: Vec<Value> = restores.iter().map(|restore| restore_json(restore, dry)).collect();
            let value = json!({
                "way": self.wording.verb,
                "done": !dry,
                "calls": calls,
                "files": files,
                "conflicts": conflicts.iter().map(conflict_json).collect::<Vec<_>>(),
            });
            self.out.print_line(&value.to_string())?;
            return Ok(exit);
        }
        let verb = if dry { format!("would {}", self.wording.verb) } else { self.wording.done.to_owned() };
        for (session, call) in calls {
            let session = paint(style::FAINT, &format!("(session {})", short_session_id(session.as_str())));
            self.out.print_line(&format!("{verb} {}  {session}", escape_invisible(call.as_str())))?;
        }
        for restore in restores {
            let line = format!(
                "  {:9} {}",
                if dry { restore_action(restore).0 } else { restore_action(restore).1 },
                escape_invisible(&self.display_path(&restore.path))
            );
            self.out.print_line(&format!("{line}{}", render_tally(restore)))?;
        }
        if dry {
            for restore in restores {
                self.out.print_line("")?;
                self.out.print_line(&escape_invisible(&render_diff(restore)))?;
            }
        }
        for conflict in conflicts {
            self.out.print_line(&format!(
                "{} {}",
                paint(style::BAD, "  but"),
                escape_invisible(&conflict_text(conflict))
            ))?;
        }
        match (dry, stopped) {
            (true, true) => self.out.print_note(&self.conflict_hint(conflicts)),
            (true, false) => self.out.print_note("nothing was changed; leave --dry-run out to do it"),
            (false, _) => self.out.print_note(&format!("`toolgate {}` takes this back", self.wording.other)),
        }
        Ok(exit)
    }

    fn print_refusal(
        &mut self,
        problem: UndoProblem,
        changes: &[JournalChange],
        roots: &[AbsPath],
    ) -> Result<CliExitCode, CliError> {
        let (reason, hint) = match &problem {
            UndoProblem::NoChange => self.explain_nothing(changes, roots),
            UndoProblem::Conflicts(conflicts) => {
                let words: Vec<String> = conflicts.iter().map(conflict_text).collect();
                (format!("no file was touched: {}", words.join("; ")), self.conflict_hint(conflicts))
            }
            UndoProblem::Failed { path, problem } => (
                format!("`{path}` could not be restored: {problem}; every file is as it was"),
                "remove what is in the way, then repeat it".to_owned(),
            ),
            UndoProblem::Journal(problem) => (
                format!("the journal cannot be used: {problem}"),
                "see that the state directory can be written and has room".to_owned(),
            ),
        };
        if self.context.global.json {
            let conflicts = match &problem {
                UndoProblem::Conflicts(conflicts) => conflicts.iter().map(conflict_json).collect(),
                UndoProblem::NoChange | UndoProblem::Failed { .. } | UndoProblem::Journal(_) => Vec::new(),
            };
            let value = json!({
                "way": self.wording.verb, "done": false, "reason": reason, "hint": hint, "conflicts": conflicts,
            });
            self.out.print_line(&value.to_string())?;
        } else {
            self.out.print_error(&reason);
            self.out.print_failure(&format!("  hint: {}", escape_invisible(&hint)));
        }
        Ok(CliExitCode::ToolFailed)
    }

    /// A path as short as it can be said here.
    fn display_path(&self, path: &AbsPath) -> String {
        let here = toolgate_files::resolve(&self.context.cwd()).real;
        match path.as_path().strip_prefix(here.as_path()) {
            Ok(below) => below.display().to_string(),
            Err(_) => path.to_string(),
        }
    }

    fn conflict_hint(&self, conflicts: &[UndoConflict]) -> String {
        if conflicts.iter().any(|conflict| !conflict.forcible) {
            return "--force cannot help here; choose other calls (see --list)".to_owned();
        }
        let look = if self.args.dry_run { "" } else { "look at it with --dry-run; " };
        format!("{look}--force overwrites what is there now, and `toolgate undo` then brings that back")
    }

    /// Why there is nothing, and where there is something.
    fn explain_nothing(&self, changes: &[JournalChange], roots: &[AbsPath]) -> (String, String) {
        let UndoWording { verb, source_state: from, .. } = self.wording;
        if let Some(call) = &self.args.call {
            let state =
                if from == ChangeState::Done { "undone already, or was never made" } else { "not undone" };
            return (format!("there is nothing to {verb}: `{call}` is {state}"), LIST_HINT.to_owned());
        }
        let elsewhere = changes.iter().find(|change| change.state == from);
        match (elsewhere, roots) {
            (Some(change), [root, ..]) if self.args.session.is_none() => (
                format!("there is nothing to {verb} in {root}"),
                format!(
                    "the last change elsewhere was of `{}`: name its call `{}`, or add --everywhere",
                    change.path, change.call
                ),
            ),
            _ if from == ChangeState::Done => (
                "there is nothing to undo".to_owned(),
                "changes that calls make through `toolgate call` or `toolgate mcp serve` are remembered"
                    .to_owned(),
            ),
            _ => (
                "there is nothing to redo".to_owned(),
                "redo makes again what `toolgate undo` took back".to_owned(),
            ),
        }
    }

    /// What can be moved over, newest first.
    fn list(&mut self, changes: &[JournalChange], roots: &[AbsPath]) -> Result<CliExitCode, CliError> {
        let beneath =
            |change: &&JournalChange| roots.is_empty() || roots.iter().any(|root| change.path.is_under(root));
        let movable =
            changes.iter().filter(|change| change.state == self.wording.source_state).filter(beneath);
        let mut calls: Vec<Vec<&JournalChange>> = Vec::new();
        for change in movable {
            let same = |one: &&JournalChange| (&one.session, &one.call) == (&change.session, &change.call);
            match calls.iter_mut().find(|call| call.first().is_some_and(same)) {
                Some(call) => call.push(change),
                None => calls.push(vec![change]),
            }
        }
        if calls.is_empty() {
            let (reason, hint) = self.explain_nothing(changes, roots);
            self.out.print_note(&format!("{reason}; {hint}"));
        }
        for call in &calls {
            let Some(newest) = call.first() else { continue };
            let mut paths: Vec<String> = call.iter().map(|change| change.path.to_string()).collect();
            paths.sort();
            paths.dedup();
            if self.context.global.json {
                let value = json!({
                    "call": newest.call, "session": newest.session, "at": newest.at_millis, "files": paths,
                });
                self.out.print_line(&value.to_string())?;
                continue;
            }
            self.out.print_line(&format!(
                "{}  {}  {}  {}",
                paint(style::FAINT, &format_time(newest.at_millis)),
                paint(style::FAINT, short_session_id(newest.session.as_str())),
                escape_invisible(newest.call.as_str()),
                escape_invisible(&paths.join(", "))
            ))?;
        }
        Ok(CliExitCode::Ok)
    }
}

const LIST_HINT: &str = "see what there is with --list";

/// The one id that is meant: itself, or the only one of which it is a part.
fn find_unique_id<'a>(
    what: &str,
    part: &str,
    ids: impl Iterator<Item = &'a str>,
) -> Result<String, CliError> {
    let ids: BTreeSet<&str> = ids.collect();
    if ids.contains(part) {
        return Ok(part.to_owned());
    }
    let mut fitting = ids.iter().filter(|id| id.contains(part));
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Ok((*one).to_owned()),
        (None, _) => {
            Err(CliError::Usage(format!("no change by a {what} `{part}` is remembered; {LIST_HINT}")))
        }
        (Some(one), Some(other)) => Err(CliError::Usage(format!(
            "`{part}` may mean the {what} `{one}` or `{other}`; give more of it"
        ))),
    }
}

/// What is to be done to a file, and what was done.
fn restore_action(restore: &FileRestore) -> (&'static str, &'static str) {
    match (&restore.now, &restore.then) {
        (None, Some(_)) => ("create", "created"),
        (Some(_), None) => ("remove", "removed"),
        (Some(_), Some(_)) | (None, None) => ("restore", "restored"),
    }
}

fn render_tally(restore: &FileRestore) -> String {
    match (&restore.now, &restore.then) {
        (Some(now), Some(then)) => match count_changed_lines(now, then) {
            Some((added, removed)) => format!("  (+{added} -{removed} lines)"),
            None => format!("  ({} bytes)", then.len()),
        },
        _ => String::new(),
    }
}

fn render_diff(restore: &FileRestore) -> String {
    let name = restore.path.to_string();
    unified_diff(&name, restore.now.as_deref(), restore.then.as_deref(), MAX_DIFF_LINES)
}

/// Of a diff. More than anyone reads, and no more than a terminal takes.
const MAX_DIFF_LINES: usize = 10_000;

fn restore_json(restore: &FileRestore, with_diff: bool) -> Value {
    let mut value = json!({ "path": restore.path, "deed": restore_action(restore).0 });
    if with_diff && let Some(fields) = value.as_object_mut() {
        fields.insert("diff".to_owned(), render_diff(restore).into());
    }
    value
}

fn conflict_json(conflict: &UndoConflict) -> Value {
    json!({ "path": conflict.path, "reason": conflict.reason, "forcible": conflict.forcible })
}

fn conflict_text(conflict: &UndoConflict) -> String {
    format!("`{}` {}", conflict.path, conflict.reason)
}
