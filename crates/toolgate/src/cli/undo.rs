//! `toolgate undo` and `toolgate redo`: restore the contents that files had before or after a call.
//!
//! There is one journal for all workspaces, so the commands are limited to changes below this workspace unless
//! `--everywhere` is given: undoing the globally last change would edit a project that the user is not looking at.
//! The user runs these commands, not a model, so no permission rule applies. A file that was changed after the call is
//! a conflict, and only `--force` overwrites it.

use super::context::CliContext;
use super::log::{format_time, short_session_id};
use super::output::{CliOutput, paint, style};
use super::uncovered_commands::{
    UncoveredCommand, describe_uncovered, find_uncovered_commands, find_uncovered_files, name_commands,
    name_kind,
};
use super::{CliError, CliExitCode};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use toolgate::render::escape_invisible;
use toolgate::settings::LoadedSettings;
use toolgate::{AbsPath, CallId};
use toolgate_files::{
    ChangeState, ConflictHandling, FileRestore, Journal, JournalChange, JournalLimits, UndoConflict,
    UndoFilter, UndoProblem, UndoSelector,
};
use toolgate_proto::{SessionId, format_count};
use toolgate_tools::{count_changed_lines, unified_diff};

/// Notes below the help of both commands.
pub(crate) const UNDO_HELP: &str = "Defaults to the last call that changed files in this workspace. All files of a call \
                                    are restored together, or none is. A file that was changed after the call is not \
                                    overwritten unless --force is given.";

/// How many lines of a diff `--dry-run` prints for one file.
const MAX_DIFF_LINES: usize = 10_000;
/// Where to find the ids that the options take.
const LIST_HINT: &str = "--list shows the calls";

/// Arguments of `toolgate undo` and `toolgate redo`.
#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    /// Only this call; a unique part of its id is enough
    pub(crate) call: Option<String>,
    /// The last N calls
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "call")]
    pub(crate) steps: Option<usize>,
    /// All calls of this session; with CALL or --steps, only among its calls. A unique part of the id is enough
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Show the changes as a diff without making them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Overwrite files that were changed after the call
    #[arg(long)]
    pub(crate) force: bool,
    /// Include calls in other workspaces
    #[arg(long)]
    pub(crate) everywhere: bool,
    /// List the calls that can be undone or redone, newest first
    #[arg(long, conflicts_with_all = ["call", "steps", "session", "dry_run", "force"])]
    pub(crate) list: bool,
}

/// Which of the two commands runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UndoDirection {
    /// Restores the contents from before the calls.
    Undo,
    /// Restores the contents from after the calls.
    Redo,
}

/// The words of a command, and the changes that it applies to.
struct UndoWording {
    /// `undo` or `redo`.
    verb: &'static str,
    /// The past tense.
    done: &'static str,
    /// The command that reverts this one.
    other: &'static str,
    /// Only changes in this state can be undone or redone.
    source_state: ChangeState,
}

impl UndoDirection {
    /// The words of this direction.
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

/// Opens the journal and runs the command.
pub(crate) fn run(
    context: &CliContext,
    args: &UndoArgs,
    direction: UndoDirection,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let dir = context.journal_dir().ok_or_else(|| {
        CliError::Usage("there is no home directory with an undo journal; set TOOLGATE_STATE_DIR".to_owned())
    })?;
    let journal = Journal::open(&dir, JournalLimits::default())
        .map_err(|problem| CliError::Usage(format!("cannot open the undo journal in {dir}: {problem}")))?;
    UndoCommand { context, args, wording: direction.wording(), direction, journal, out }.run()
}

/// One run of `undo` or `redo`.
struct UndoCommand<'a> {
    /// The global options and directories.
    context: &'a CliContext,
    /// The options of the command.
    args: &'a UndoArgs,
    /// The words for messages.
    wording: UndoWording,
    /// Undo or redo.
    direction: UndoDirection,
    /// The journal with the contents of changed files.
    journal: Journal,
    /// Where results go.
    out: &'a mut CliOutput,
}

impl UndoCommand<'_> {
    /// Selects the changes, applies or plans them, and prints the outcome.
    fn run(mut self) -> Result<CliExitCode, CliError> {
        let unusable = |problem: toolgate_files::FileProblem| CliError::Usage(problem.to_string());
        let changes = self.journal.list().map_err(unusable)?;
        let damaged = self.journal.count_damaged_lines().map_err(unusable)?;
        if let (1.., Some(dir)) = (damaged, self.context.journal_dir()) {
            self.out.print_note(&format!(
                "{} of {dir}/journal/changes.jsonl cannot be read, so what they recorded cannot be undone",
                format_count(damaged as u64, "line", "lines")
            ));
        }
        let roots = self.roots();
        if self.args.list {
            return self.list(&changes, &roots);
        }
        let selector = self.select_changes(&changes, &roots)?;
        let conflicts = if self.args.force { ConflictHandling::Overwrite } else { ConflictHandling::Refuse };
        let outcome = if self.args.dry_run {
            let plan = match self.direction {
                UndoDirection::Undo => self.journal.plan_undo(&selector),
                UndoDirection::Redo => self.journal.plan_redo(&selector),
            };
            plan.map(|plan| (plan.calls, plan.restores, plan.conflicts))
        } else {
            let restored = match self.direction {
                UndoDirection::Undo => self.journal.undo(&selector, conflicts),
                UndoDirection::Redo => self.journal.redo(&selector, conflicts),
            };
            restored.map(|restored| (restored.calls, restored.restores, Vec::new()))
        };
        match outcome {
            Ok((calls, restores, conflicts)) => {
                let uncovered = self.find_uncovered(&calls, &changes, &roots);
                self.print_outcome(&calls, &restores, &conflicts, &uncovered)
            }
            Err(problem) => self.print_refusal(problem, &changes, &roots),
        }
    }

    /// The commands that ran after the oldest of these calls. They may build on what is undone, and may be what the user
    /// has in mind as the last thing that happened.
    fn find_uncovered(
        &self,
        calls: &[(SessionId, CallId)],
        changes: &[JournalChange],
        roots: &[AbsPath],
    ) -> Vec<UncoveredCommand> {
        if self.direction == UndoDirection::Redo {
            return Vec::new();
        }
        let is_meant = |change: &&JournalChange| {
            calls.iter().any(|(session, call)| (session, call) == (&change.session, &change.call))
        };
        let since = changes.iter().filter(is_meant).map(|change| change.at_millis).min();
        since.map(|since| find_uncovered_commands(self.context, since, roots)).unwrap_or_default()
    }

    /// The directories whose changes are considered; empty for all.
    fn roots(&self) -> Vec<AbsPath> {
        if self.args.everywhere {
            return Vec::new();
        }
        let added = self.context.global.add_dir.iter().map(|dir| self.context.ambient.absolute_path(dir));
        let dirs = std::iter::once(self.context.cwd()).chain(added);
        dirs.map(|dir| toolgate_files::resolve(&dir).real).collect()
    }

    /// The changes that the options select.
    fn select_changes(&self, changes: &[JournalChange], roots: &[AbsPath]) -> Result<UndoSelector, CliError> {
        let session = match &self.args.session {
            Some(part) => {
                Some(find_unique_id("session", part, changes.iter().map(|change| change.session.as_str()))?)
            }
            None => None,
        };
        let session = session.map(SessionId::new);
        if let Some(part) = &self.args.call {
            let in_session =
                |change: &&JournalChange| session.as_ref().is_none_or(|session| *session == change.session);
            let calls = changes.iter().filter(in_session).map(|change| change.call.as_str());
            let call = find_unique_id("call", part, calls)?;
            let sessions: BTreeSet<&str> = changes
                .iter()
                .filter(|change| change.call.as_str() == call)
                .map(|change| change.session.as_str())
                .collect();
            if session.is_none() && sessions.len() > 1 {
                let names: Vec<String> = sessions.iter().map(|name| format!("`{name}`")).collect();
                return Err(CliError::Usage(format!(
                    "the call id `{call}` occurs in {} sessions; add --session with one of {}",
                    names.len(),
                    names.join(", ")
                )));
            }
            return Ok(UndoSelector::Call(CallId::new(call), session));
        }
        let filter = |session: Option<SessionId>| match session {
            Some(session) => UndoFilter::session(session),
            None => UndoFilter::default().with_beneath(roots.to_vec()),
        };
        Ok(match (self.args.steps, session) {
            (Some(steps), session) => UndoSelector::Steps(steps, filter(session)),
            (None, Some(session)) => UndoSelector::Session(session),
            (None, None) => UndoSelector::Last(filter(None)),
        })
    }

    /// Prints the calls and files; for `--dry-run` also the diffs and conflicts.
    fn print_outcome(
        &mut self,
        calls: &[(SessionId, CallId)],
        restores: &[FileRestore],
        conflicts: &[UndoConflict],
        uncovered: &[UncoveredCommand],
    ) -> Result<CliExitCode, CliError> {
        let dry = self.args.dry_run;
        let blocked = conflicts.iter().any(|conflict| !(self.args.force && conflict.forcible));
        let exit = if blocked { CliExitCode::ToolFailed } else { CliExitCode::Ok };
        if self.context.global.json {
            let value = self.outcome_json(calls, restores, conflicts, uncovered);
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
        for file in find_uncovered_files(self.context, calls) {
            let path = escape_invisible(&self.display_path(&file.path));
            let label = if dry { "keep" } else { "kept" };
            self.out.print_line(&format!("  {label:9} {path}  (not undone: {})", file.reason))?;
        }
        if let Some(text) = describe_uncovered(uncovered) {
            self.out.print_note(&escape_invisible(&text));
        }
        if dry {
            for restore in restores.iter().filter(|restore| restore.now != restore.then) {
                self.out.print_line("")?;
                self.out.print_line(&escape_invisible(&render_diff(restore)))?;
            }
        }
        for conflict in conflicts {
            self.out.print_line(&format!(
                "{} {}",
                paint(style::BAD, "  conflict:"),
                escape_invisible(&conflict_text(conflict))
            ))?;
        }
        let note = self.describe_next_step(calls.len(), restores, conflicts, blocked);
        self.out.print_note(&note);
        Ok(exit)
    }

    /// What can be done after an outcome.
    fn describe_next_step(
        &self,
        calls: usize,
        restores: &[FileRestore],
        conflicts: &[UndoConflict],
        blocked: bool,
    ) -> String {
        match (self.args.dry_run, blocked) {
            (true, true) => self.conflict_hint(conflicts),
            (true, false) => "no file was changed; run it without --dry-run to change them".to_owned(),
            (false, _) if restores.iter().any(FileRestore::overwrites_other_content) => {
                "`toolgate undo` brings the overwritten content back".to_owned()
            }
            (false, _) if calls > 1 => format!("`toolgate {} -n {calls}` reverts this", self.wording.other),
            (false, _) => format!("`toolgate {}` reverts this", self.wording.other),
        }
    }

    /// The outcome for `--json`.
    fn outcome_json(
        &self,
        calls: &[(SessionId, CallId)],
        restores: &[FileRestore],
        conflicts: &[UndoConflict],
        uncovered: &[UncoveredCommand],
    ) -> Value {
        let dry = self.args.dry_run;
        let call_ids: Vec<Value> =
            calls.iter().map(|(session, call)| json!({ "session": session, "call": call })).collect();
        let files: Vec<Value> = restores.iter().map(|restore| restore_json(restore, dry)).collect();
        let kept = find_uncovered_files(self.context, calls);
        json!({
            "way": self.wording.verb,
            "done": !dry,
            "calls": call_ids,
            "files": files,
            "notRestored": kept,
            "conflicts": conflicts.iter().map(conflict_json).collect::<Vec<_>>(),
            "notCovered": uncovered.iter().map(UncoveredCommand::to_json).collect::<Vec<_>>(),
        })
    }

    /// Prints why nothing was changed, and what to do.
    fn print_refusal(
        &mut self,
        problem: UndoProblem,
        changes: &[JournalChange],
        roots: &[AbsPath],
    ) -> Result<CliExitCode, CliError> {
        let (reason, hint) = match &problem {
            UndoProblem::NoChange => self.explain_nothing(changes, roots),
            UndoProblem::Conflicts(conflicts) => {
                let texts: Vec<String> = conflicts.iter().map(conflict_text).collect();
                (format!("no file was changed: {}", texts.join("; ")), self.conflict_hint(conflicts))
            }
            UndoProblem::Failed { path, problem } => (
                format!("cannot restore `{path}`: {problem}; no file was changed"),
                "fix that, then run the command again".to_owned(),
            ),
            UndoProblem::Journal(problem) => (
                format!("cannot use the undo journal: {problem}"),
                "check that the state directory is writable and the disk is not full".to_owned(),
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

    /// A path relative to the workspace, if it is inside.
    fn display_path(&self, path: &AbsPath) -> String {
        let here = toolgate_files::resolve(&self.context.cwd()).real;
        match path.as_path().strip_prefix(here.as_path()) {
            Ok(below) => below.display().to_string(),
            Err(_) => path.to_string(),
        }
    }

    /// What to do about conflicts.
    fn conflict_hint(&self, conflicts: &[UndoConflict]) -> String {
        if conflicts.iter().any(|conflict| !conflict.forcible) {
            return format!("--force cannot resolve this; choose other calls, {LIST_HINT}");
        }
        let look = if self.args.dry_run { "" } else { "--dry-run shows the difference; " };
        format!(
            "{look}--force overwrites the file, and `toolgate undo` can then bring the overwritten content back"
        )
    }

    /// Why there is nothing to undo or redo, and where there is something.
    fn explain_nothing(&self, changes: &[JournalChange], roots: &[AbsPath]) -> (String, String) {
        let UndoWording { verb, source_state: from, .. } = self.wording;
        if let Some(call) = &self.args.call {
            let state =
                if from == ChangeState::Done { "already undone or changed no file" } else { "not undone" };
            return (format!("there is nothing to {verb}: `{call}` is {state}"), LIST_HINT.to_owned());
        }
        let elsewhere = changes.iter().find(|change| change.state == from);
        match (elsewhere, roots) {
            (Some(change), [root, ..]) if self.args.session.is_none() => (
                format!("there is nothing to {verb} in {root}"),
                format!(
                    "the last change in another workspace was to `{}`; give its call id `{}`, or add --everywhere",
                    change.path, change.call
                ),
            ),
            _ if from == ChangeState::Done => {
                ("there is nothing to undo".to_owned(), self.explain_uncovered(roots))
            }
            _ => (
                "there is nothing to redo".to_owned(),
                "only changes that `toolgate undo` reverted can be redone".to_owned(),
            ),
        }
    }

    /// What can be undone, with the commands that ran here and cannot.
    fn explain_uncovered(&self, roots: &[AbsPath]) -> String {
        let commands = find_uncovered_commands(self.context, 0, roots);
        if commands.is_empty() {
            return "only file changes of calls through toolgate (`run`, `call`, `mcp serve`, `acp`) can be undone"
                .to_owned();
        }
        let (snapshot, unrecorded): (Vec<_>, Vec<_>) =
            commands.iter().partition(|command| !command.not_kept.is_empty());
        let mut reasons = Vec::new();
        if !unrecorded.is_empty() {
            reasons.push(format!(
                "{} ran here whose changes cannot be undone: {}",
                name_kind(unrecorded.iter().copied()),
                name_commands(unrecorded.iter().copied()),
            ));
            if !unrecorded.iter().all(|command| command.is_tool) {
                reasons.push(self.explain_snapshots());
            }
        }
        // The setting was on for these commands, and does not help.
        if let Some(last) = snapshot.last() {
            let files: Vec<String> = last.not_kept.iter().map(ToString::to_string).collect();
            reasons.push(format!(
                "{} changed what no snapshot keeps, so restore it by hand: {}",
                name_commands([*last]),
                files.join(", ")
            ));
        }
        reasons.join("; ")
    }

    /// How the changes of later commands can be undone.
    fn explain_snapshots(&self) -> String {
        let settings =
            self.context.settings_options().and_then(|options| Ok(LoadedSettings::load(&options)?));
        if settings.is_ok_and(|settings| settings.merged().shell.snapshots == Some(true)) {
            return "`shell.snapshots` is on, so changes of later commands can, if they run in the sandbox"
                .to_owned();
        }
        let dir = self.context.ambient.config_dir.as_ref();
        let place = dir.map(|dir| format!(" in {}", dir.join("settings.json"))).unwrap_or_default();
        format!(
            "with the setting `shell.snapshots`{place} changes of later commands can, if they run in the sandbox"
        )
    }

    /// Prints the calls that can be undone or redone, newest first.
    fn list(&mut self, changes: &[JournalChange], roots: &[AbsPath]) -> Result<CliExitCode, CliError> {
        let beneath =
            |change: &&JournalChange| roots.is_empty() || roots.iter().any(|root| change.path.is_under(root));
        let selectable =
            changes.iter().filter(|change| change.state == self.wording.source_state).filter(beneath);
        let mut calls: Vec<Vec<&JournalChange>> = Vec::new();
        for change in selectable {
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

/// The id that equals `part`, or the only one that contains it.
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
            Err(CliError::Usage(format!("no recorded change belongs to a {what} `{part}`; {LIST_HINT}")))
        }
        (Some(one), Some(other)) => Err(CliError::Usage(format!(
            "`{part}` matches the {what} `{one}` and `{other}`; give more of the id"
        ))),
    }
}

/// What happens to a file, in the infinitive and the past tense.
fn restore_action(restore: &FileRestore) -> (&'static str, &'static str) {
    match (&restore.now, &restore.then) {
        (None, Some(_)) => ("create", "created"),
        (Some(_), None) => ("remove", "removed"),
        (Some(_), Some(_)) | (None, None) => ("restore", "restored"),
    }
}

/// The number of changed lines, or the size of a file that is not text, and the mode if it changes.
fn render_tally(restore: &FileRestore) -> String {
    let mut parts = Vec::new();
    if let (Some(now), Some(then)) = (&restore.now, &restore.then)
        && (now != then || restore.mode_change.is_none())
    {
        parts.push(match count_changed_lines(now, then) {
            Some((added, removed)) => format!("+{added} -{removed} lines"),
            None => format!("{} bytes", then.len()),
        });
    }
    parts.extend(restore.mode_change.map(|(now, then)| format!("mode {now:o} → {then:o}")));
    if parts.is_empty() { String::new() } else { format!("  ({})", parts.join(", ")) }
}

/// The diff from the current content to the restored one.
fn render_diff(restore: &FileRestore) -> String {
    let name = restore.path.to_string();
    unified_diff(&name, restore.now.as_deref(), restore.then.as_deref(), MAX_DIFF_LINES)
}

/// A file in the JSON output, with its diff for `--dry-run`.
fn restore_json(restore: &FileRestore, with_diff: bool) -> Value {
    let mut value = json!({ "path": restore.path, "deed": restore_action(restore).0 });
    if let (Some((now, then)), Some(fields)) = (restore.mode_change, value.as_object_mut()) {
        fields.insert("mode".to_owned(), json!({ "now": format!("{now:o}"), "then": format!("{then:o}") }));
    }
    if with_diff && let Some(fields) = value.as_object_mut() {
        fields.insert("diff".to_owned(), render_diff(restore).into());
    }
    value
}

/// A conflict in the JSON output.
fn conflict_json(conflict: &UndoConflict) -> Value {
    json!({ "path": conflict.path, "reason": conflict.reason, "forcible": conflict.forcible })
}

/// A conflict in a message.
fn conflict_text(conflict: &UndoConflict) -> String {
    format!("`{}` {}", conflict.path, conflict.reason)
}
