//! `toolgate undo` and `toolgate redo`: taking back what calls changed in files, and making it again.
//!
//! Without more, the last call that changed something in this workspace is meant: the journal is one for all
//! workspaces, and nobody wants a file to change in a project they are not looking at.
//! A person does this, not a model, so no rule is asked; what stands in the way is only the work of somebody else.

use super::args::UndoArgs;
use super::log::{short, when};
use super::out::{Out, paint, style};
use super::world::World;
use super::{Exit, Failure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use toolgate::render::visible;
use toolgate::{AbsPath, CallId};
use toolgate_os::{
    Among, Change, Conflict, FileRestore, How, Journal, JournalLimits, State, UndoProblem, UndoSelector,
};
use toolgate_proto::SessionId;
use toolgate_tools::{count_changed_lines, unified_diff};

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Back to what was before.
    Undo,
    /// Forward again.
    Redo,
}

/// The words for a way.
struct Words {
    verb: &'static str,
    done: &'static str,
    other: &'static str,
    /// Changes in this state can be moved over.
    from: State,
}

impl Way {
    fn words(self) -> Words {
        match self {
            Self::Undo => Words { verb: "undo", done: "undid", other: "redo", from: State::Done },
            Self::Redo => Words { verb: "redo", done: "redid", other: "undo", from: State::Undone },
        }
    }
}

pub(crate) fn run(world: &World, args: &UndoArgs, way: Way, out: &mut Out) -> Result<Exit, Failure> {
    let dir = world.journal_dir().ok_or_else(|| {
        Failure::Usage("nothing is remembered: there is no home directory; set TOOLGATE_STATE_DIR".to_owned())
    })?;
    let journal = Journal::open(&dir, JournalLimits::default())
        .map_err(|problem| Failure::Usage(format!("{dir} cannot be used: {problem}")))?;
    let desk = Desk { world, args, words: way.words(), way, journal, out };
    desk.run()
}

struct Desk<'a> {
    world: &'a World,
    args: &'a UndoArgs,
    words: Words,
    way: Way,
    journal: Journal,
    out: &'a mut Out,
}

impl Desk<'_> {
    fn run(mut self) -> Result<Exit, Failure> {
        let changes = self.journal.list().map_err(|problem| Failure::Usage(problem.to_string()))?;
        let roots = self.roots();
        if self.args.list {
            return self.list(&changes, &roots);
        }
        let which = self.which(&changes, &roots)?;
        let how = if self.args.force { How::Force } else { How::Careful };
        let told = if self.args.dry_run {
            let plan = match self.way {
                Way::Undo => self.journal.plan_undo(&which),
                Way::Redo => self.journal.plan_redo(&which),
            };
            plan.map(|plan| (plan.calls, plan.restores, plan.conflicts))
        } else {
            let moved = match self.way {
                Way::Undo => self.journal.undo(&which, how),
                Way::Redo => self.journal.redo(&which, how),
            };
            moved.map(|moved| (moved.calls, moved.restores, Vec::new()))
        };
        match told {
            Ok((calls, restores, conflicts)) => self.tell(&calls, &restores, &conflicts),
            Err(problem) => self.refuse(problem, &changes, &roots),
        }
    }

    /// Where the last call is looked for; empty for everywhere.
    fn roots(&self) -> Vec<AbsPath> {
        if self.args.everywhere {
            return Vec::new();
        }
        let added = self.world.global.add_dir.iter().map(|dir| self.world.ambient.path(dir));
        let dirs = std::iter::once(self.world.cwd()).chain(added);
        dirs.map(|dir| toolgate_os::resolve(&dir).real).collect()
    }

    fn which(&self, changes: &[Change], roots: &[AbsPath]) -> Result<UndoSelector, Failure> {
        let session = match &self.args.session {
            Some(part) => {
                Some(one_of("session", part, changes.iter().map(|change| change.session.as_str()))?)
            }
            None => None,
        };
        let session = session.map(SessionId::new);
        if let Some(part) = &self.args.call {
            let mine = |change: &&Change| session.as_ref().is_none_or(|session| *session == change.session);
            let call = one_of("call", part, changes.iter().filter(mine).map(|change| change.call.as_str()))?;
            let sessions: BTreeSet<&str> = changes
                .iter()
                .filter(|change| change.call.as_str() == call)
                .map(|change| change.session.as_str())
                .collect();
            if session.is_none() && sessions.len() > 1 {
                let names: Vec<String> = sessions.iter().map(|name| format!("`{name}`")).collect();
                return Err(Failure::Usage(format!(
                    "{} sessions have a call `{call}`; add --session with one of {}",
                    names.len(),
                    names.join(", ")
                )));
            }
            return Ok(UndoSelector::Call(CallId::new(call), session));
        }
        let among = |session: Option<SessionId>| {
            let beneath = if session.is_some() { Vec::new() } else { roots.to_vec() };
            Among { session, beneath }
        };
        Ok(match (self.args.steps, session) {
            (Some(steps), session) => UndoSelector::Steps(steps, among(session)),
            (None, Some(session)) => UndoSelector::Session(session),
            (None, None) => UndoSelector::Last(among(None)),
        })
    }

    fn tell(
        &mut self,
        calls: &[(SessionId, CallId)],
        restores: &[FileRestore],
        conflicts: &[Conflict],
    ) -> Result<Exit, Failure> {
        let dry = self.args.dry_run;
        let stopped = conflicts.iter().any(|conflict| !(self.args.force && conflict.forcible));
        let exit = if stopped { Exit::ToolFailed } else { Exit::Ok };
        if self.world.global.json {
            let calls: Vec<Value> =
                calls.iter().map(|(session, call)| json!({ "session": session, "call": call })).collect();
            let files: Vec<Value> = restores.iter().map(|restore| file(restore, dry)).collect();
            let value = json!({
                "way": self.words.verb,
                "done": !dry,
                "calls": calls,
                "files": files,
                "conflicts": conflicts.iter().map(clash).collect::<Vec<_>>(),
            });
            self.out.line(&value.to_string())?;
            return Ok(exit);
        }
        let verb = if dry { format!("would {}", self.words.verb) } else { self.words.done.to_owned() };
        for (session, call) in calls {
            let session = paint(style::FAINT, &format!("(session {})", short(session.as_str())));
            self.out.line(&format!("{verb} {}  {session}", visible(call.as_str())))?;
        }
        for restore in restores {
            let line = format!(
                "  {:9} {}",
                if dry { deed(restore).0 } else { deed(restore).1 },
                visible(&self.named(&restore.path))
            );
            self.out.line(&format!("{line}{}", tally(restore)))?;
        }
        if dry {
            for restore in restores {
                self.out.line("")?;
                self.out.line(&visible(&diff(restore)))?;
            }
        }
        for conflict in conflicts {
            self.out.line(&format!(
                "{} {}",
                paint(style::BAD, "  but"),
                visible(&conflict_text(conflict))
            ))?;
        }
        match (dry, stopped) {
            (true, true) => self.out.note(&self.conflict_hint(conflicts)),
            (true, false) => self.out.note("nothing was changed; leave --dry-run out to do it"),
            (false, _) => self.out.note(&format!("`toolgate {}` takes this back", self.words.other)),
        }
        Ok(exit)
    }

    fn refuse(
        &mut self,
        problem: UndoProblem,
        changes: &[Change],
        roots: &[AbsPath],
    ) -> Result<Exit, Failure> {
        let (reason, hint) = match &problem {
            UndoProblem::Nothing => self.nothing(changes, roots),
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
        if self.world.global.json {
            let conflicts = match &problem {
                UndoProblem::Conflicts(conflicts) => conflicts.iter().map(clash).collect(),
                UndoProblem::Nothing | UndoProblem::Failed { .. } | UndoProblem::Journal(_) => Vec::new(),
            };
            let value = json!({
                "way": self.words.verb, "done": false, "reason": reason, "hint": hint, "conflicts": conflicts,
            });
            self.out.line(&value.to_string())?;
        } else {
            self.out.error(&reason);
            self.out.failure(&format!("  hint: {}", visible(&hint)));
        }
        Ok(Exit::ToolFailed)
    }

    /// A path as short as it can be said here.
    fn named(&self, path: &AbsPath) -> String {
        let here = toolgate_os::resolve(&self.world.cwd()).real;
        match path.as_path().strip_prefix(here.as_path()) {
            Ok(below) => below.display().to_string(),
            Err(_) => path.to_string(),
        }
    }

    fn conflict_hint(&self, conflicts: &[Conflict]) -> String {
        if conflicts.iter().any(|conflict| !conflict.forcible) {
            return "--force cannot help here; choose other calls (see --list)".to_owned();
        }
        let look = if self.args.dry_run { "" } else { "look at it with --dry-run; " };
        format!("{look}--force overwrites what is there now, and `toolgate undo` then brings that back")
    }

    /// Why there is nothing, and where there is something.
    fn nothing(&self, changes: &[Change], roots: &[AbsPath]) -> (String, String) {
        let Words { verb, from, .. } = self.words;
        if let Some(call) = &self.args.call {
            let state = if from == State::Done { "undone already, or was never made" } else { "not undone" };
            return (format!("there is nothing to {verb}: `{call}` is {state}"), LIST.to_owned());
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
            _ if from == State::Done => (
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
    fn list(&mut self, changes: &[Change], roots: &[AbsPath]) -> Result<Exit, Failure> {
        let beneath =
            |change: &&Change| roots.is_empty() || roots.iter().any(|root| change.path.is_under(root));
        let movable = changes.iter().filter(|change| change.state == self.words.from).filter(beneath);
        let mut calls: Vec<Vec<&Change>> = Vec::new();
        for change in movable {
            let same = |one: &&Change| (&one.session, &one.call) == (&change.session, &change.call);
            match calls.iter_mut().find(|call| call.first().is_some_and(same)) {
                Some(call) => call.push(change),
                None => calls.push(vec![change]),
            }
        }
        if calls.is_empty() {
            let (reason, hint) = self.nothing(changes, roots);
            self.out.note(&format!("{reason}; {hint}"));
        }
        for call in &calls {
            let Some(newest) = call.first() else { continue };
            let mut paths: Vec<String> = call.iter().map(|change| change.path.to_string()).collect();
            paths.sort();
            paths.dedup();
            if self.world.global.json {
                let value = json!({
                    "call": newest.call, "session": newest.session, "at": newest.at_millis, "files": paths,
                });
                self.out.line(&value.to_string())?;
                continue;
            }
            self.out.line(&format!(
                "{}  {}  {}  {}",
                paint(style::FAINT, &when(newest.at_millis)),
                paint(style::FAINT, short(newest.session.as_str())),
                visible(newest.call.as_str()),
                visible(&paths.join(", "))
            ))?;
        }
        Ok(Exit::Ok)
    }
}

const LIST: &str = "see what there is with --list";

/// The one id that is meant: itself, or the only one of which it is a part.
fn one_of<'a>(what: &str, part: &str, ids: impl Iterator<Item = &'a str>) -> Result<String, Failure> {
    let ids: BTreeSet<&str> = ids.collect();
    if ids.contains(part) {
        return Ok(part.to_owned());
    }
    let mut fitting = ids.iter().filter(|id| id.contains(part));
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Ok((*one).to_owned()),
        (None, _) => Err(Failure::Usage(format!("no change by a {what} `{part}` is remembered; {LIST}"))),
        (Some(one), Some(other)) => {
            Err(Failure::Usage(format!("`{part}` may mean the {what} `{one}` or `{other}`; give more of it")))
        }
    }
}

/// What is to be done to a file, and what was done.
fn deed(restore: &FileRestore) -> (&'static str, &'static str) {
    match (&restore.now, &restore.then) {
        (None, Some(_)) => ("create", "created"),
        (Some(_), None) => ("remove", "removed"),
        (Some(_), Some(_)) | (None, None) => ("restore", "restored"),
    }
}

fn tally(restore: &FileRestore) -> String {
    match (&restore.now, &restore.then) {
        (Some(now), Some(then)) => match count_changed_lines(now, then) {
            Some((added, removed)) => format!("  (+{added} -{removed} lines)"),
            None => format!("  ({} bytes)", then.len()),
        },
        _ => String::new(),
    }
}

fn diff(restore: &FileRestore) -> String {
    let name = restore.path.to_string();
    unified_diff(&name, restore.now.as_deref(), restore.then.as_deref(), MAX_DIFF_LINES)
}

/// Of a diff. More than anyone reads, and no more than a terminal takes.
const MAX_DIFF_LINES: usize = 10_000;

fn file(restore: &FileRestore, with_diff: bool) -> Value {
    let mut value = json!({ "path": restore.path, "deed": deed(restore).0 });
    if with_diff && let Some(fields) = value.as_object_mut() {
        fields.insert("diff".to_owned(), diff(restore).into());
    }
    value
}

fn clash(conflict: &Conflict) -> Value {
    json!({ "path": conflict.path, "reason": conflict.reason, "forcible": conflict.forcible })
}

fn conflict_text(conflict: &Conflict) -> String {
    format!("`{}` {}", conflict.path, conflict.reason)
}
