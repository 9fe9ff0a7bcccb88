//! Undo and redo.
//!
//! Changes are undone file by file: what the newest one made must still be there, and what the oldest one displaced
//! comes back in one step.
//! Everything is looked at before anything is touched, and if one file fails the others go back to what they were.

use super::line::{ChangeState, JournalLine, JournalPath};
use super::select::{UndoSelector, select_changes};
use super::{ContentDescriptor, Journal, JournalChange};
use crate::anchored_path::AnchoredPath;
use crate::replace::{ChangeProblem, ReplaceRequest, put_content, remove_file, temporary_name};
use crate::{ContentHash, FileProblem, FileSnapshot, lock_path_blocking, read_snapshot};
use std::collections::BTreeMap;
use toolgate_proto::{AbsPath, CallId, SessionId};

/// Whether to mind that somebody else has changed a file since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictHandling {
    /// Refuse then.
    Refuse,
    /// Overwrite it.
    Overwrite,
}

/// What undo or redo would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoPlan {
    /// The calls whose changes they are, in the order in which they are moved over.
    pub calls: Vec<(SessionId, CallId)>,
    /// Each file.
    pub restores: Vec<FileRestore>,
    /// Why it would be refused.
    pub conflicts: Vec<UndoConflict>,
    to: ChangeState,
}

/// What would happen to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRestore {
    /// The file.
    pub path: AbsPath,
    /// The changes that are moved over.
    pub changes: Vec<u64>,
    /// What is there now; `None` for nothing.
    pub now: Option<Vec<u8>>,
    /// What will be there; `None` where the file will be removed.
    pub then: Option<Vec<u8>>,
    current: Option<FileSnapshot>,
    target: Option<ContentDescriptor>,
    /// What is there now is nobody's change that is known here.
    foreign: bool,
    session: SessionId,
}

/// Why a file cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoConflict {
    /// The file.
    pub path: AbsPath,
    /// Why, for people.
    pub reason: String,
    /// Whether force would help.
    pub forcible: bool,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoOutcome {
    /// The calls whose changes they were.
    pub calls: Vec<(SessionId, CallId)>,
    /// Each file, with what was there and what is there now.
    pub restores: Vec<FileRestore>,
}

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoProblem {
    /// No such change is remembered.
    NoChange,
    /// Files have changed since, or their content was not kept.
    Conflicts(Vec<UndoConflict>),
    /// A file could not be restored; all are as they were.
    Failed {
        /// The file.
        path: AbsPath,
        /// Why.
        problem: ChangeProblem,
    },
    /// The journal could not be used.
    Journal(FileProblem),
}

impl std::fmt::Display for UndoProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoChange => f.write_str("there is no such change to move over"),
            Self::Conflicts(conflicts) => {
                let words: Vec<String> = conflicts
                    .iter()
                    .map(|conflict| format!("`{}` {}", conflict.path, conflict.reason))
                    .collect();
                f.write_str(&words.join("; "))
            }
            Self::Failed { path, problem } => write!(f, "`{path}`: {problem}"),
            Self::Journal(problem) => write!(f, "the journal: {problem}"),
        }
    }
}

impl std::error::Error for UndoProblem {}

impl From<FileProblem> for UndoProblem {
    fn from(problem: FileProblem) -> Self {
        Self::Journal(problem)
    }
}

/// One undo or redo, carried out.
#[derive(Debug, Clone)]
struct UndoRun {
    to: ChangeState,
    /// When, and later than every one before it, so that redo knows what was undone last.
    at: u64,
    /// The name of what is forced over others' work: one for all of it, so that it comes back together.
    forced: CallId,
}

/// One of the two contents of a change.
type ContentAccessor = fn(&JournalChange) -> Option<ContentDescriptor>;

impl Journal {
    /// What an undo would do. Touches nothing.
    pub fn plan_undo(&self, which: &UndoSelector) -> Result<UndoPlan, UndoProblem> {
        self.plan(which, ChangeState::Undone)
    }

    /// What a redo would do. Touches nothing.
    pub fn plan_redo(&self, which: &UndoSelector) -> Result<UndoPlan, UndoProblem> {
        self.plan(which, ChangeState::Done)
    }

    /// Undoes changes: all of them or none.
    pub fn undo(&self, which: &UndoSelector, how: ConflictHandling) -> Result<UndoOutcome, UndoProblem> {
        self.apply_plan(self.plan_undo(which)?, how)
    }

    /// Makes changes that were undone once more: all of them or none.
    pub fn redo(&self, which: &UndoSelector, how: ConflictHandling) -> Result<UndoOutcome, UndoProblem> {
        self.apply_plan(self.plan_redo(which)?, how)
    }

    fn plan(&self, which: &UndoSelector, to: ChangeState) -> Result<UndoPlan, UndoProblem> {
        let chosen = select_changes(self.list()?, which, to);
        if chosen.is_empty() {
            return Err(UndoProblem::NoChange);
        }
        // In the order in which they are moved over: undo newest first, redo oldest first.
        let mut calls: Vec<(SessionId, CallId)> = Vec::new();
        for change in &chosen {
            let call = (change.session.clone(), change.call.clone());
            if !calls.contains(&call) {
                calls.push(call);
            }
        }
        let mut by_path: BTreeMap<std::path::PathBuf, Vec<JournalChange>> = BTreeMap::new();
        for change in chosen {
            by_path.entry(change.path.as_path().to_path_buf()).or_default().push(change);
        }
        let mut plan = UndoPlan { calls, restores: Vec::new(), conflicts: Vec::new(), to };
        for changes in by_path.into_values() {
            self.plan_file(&changes, &mut plan)?;
        }
        Ok(plan)
    }

    fn plan_file(&self, changes: &[JournalChange], plan: &mut UndoPlan) -> Result<(), UndoProblem> {
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return Ok(()) };
        let (from, into): (ContentAccessor, ContentAccessor) = match plan.to {
            ChangeState::Done => (|change| change.before, |change| change.after),
            ChangeState::Undone | ChangeState::Begun | ChangeState::Failed => {
                (|change| change.after, |change| change.before)
            }
        };
        let path = first.path.clone();
        let conflict = |reason: String, forcible| UndoConflict { path: path.clone(), reason, forcible };
        let current = match read_snapshot(&path, u64::MAX) {
            Ok(current) => current,
            Err(problem) => {
                plan.conflicts.push(conflict(problem.to_string(), false));
                return Ok(());
            }
        };
        let now = current.as_ref().map(|version| version.hash());
        let foreign = now != descriptor_hash(from(first));
        if foreign {
            plan.conflicts.push(conflict(conflict_reason(now, descriptor_hash(from(first))), true));
        }
        let chain = changes.windows(2).all(|pair| match pair {
            [one, next] => descriptor_hash(into(one)) == descriptor_hash(from(next)),
            _ => true,
        });
        if !chain {
            plan.conflicts.push(conflict("was also changed by other calls in between".to_owned(), true));
        }
        let target = into(last);
        let then = match target {
            None => None,
            Some(kept) => match self.content(&kept) {
                Ok(bytes) => Some(bytes),
                Err(problem) => {
                    plan.conflicts.push(conflict(format!("cannot come back: {problem}"), false));
                    return Ok(());
                }
            },
        };
        plan.restores.push(FileRestore {
            path,
            changes: changes.iter().map(|change| change.id).collect(),
            now: current.as_ref().map(|version| version.bytes.clone()),
            then,
            current,
            target,
            foreign,
            session: first.session.clone(),
        });
        Ok(())
    }

    fn apply_plan(&self, plan: UndoPlan, how: ConflictHandling) -> Result<UndoOutcome, UndoProblem> {
        let stopping = |conflict: &&UndoConflict| how == ConflictHandling::Refuse || !conflict.forcible;
        if plan.conflicts.iter().any(|conflict| stopping(&conflict)) {
            return Err(UndoProblem::Conflicts(plan.conflicts));
        }
        let _live = self.lock_in_progress()?;
        let newest = self.list()?.iter().map(|change| change.moved_at_millis).max();
        let run = UndoRun {
            to: plan.to,
            at: crate::now_millis().max(newest.unwrap_or(0) + 1),
            forced: CallId::new(crate::generate_id("undo_")),
        };
        for (index, restore) in plan.restores.iter().enumerate() {
            if let Err(problem) = self.restore_file(restore, &run) {
                for done in plan.restores.iter().take(index).rev() {
                    self.roll_back(done, &run);
                }
                return Err(UndoProblem::Failed { path: restore.path.clone(), problem });
            }
        }
        Ok(UndoOutcome { calls: plan.calls, restores: plan.restores })
    }

    fn restore_file(&self, restore: &FileRestore, run: &UndoRun) -> Result<(), ChangeProblem> {
        let _turn = lock_path_blocking(&restore.path);
        let (to, at) = (run.to, run.at);
        let temp = temporary_name();
        // What is there now is what the opposite move will need.
        let unrecorded = |problem: FileProblem| ChangeProblem::Unrecorded(problem.to_string());
        let overwriting = self
            .with_lock(|inner| {
                let small = |version: &FileSnapshot| version.fingerprint.bytes <= self.limits.file_bytes;
                let stored = match restore.current.as_ref().filter(|current| small(current)) {
                    Some(current) => {
                        let kept = inner.blobs.store(current, true)?;
                        let newest = restore.changes.iter().max().and_then(|id| inner.index.changes.get(id));
                        descriptor_hash(newest.and_then(|change| change.after)) == Some(kept.hash)
                    }
                    None => false,
                };
                inner.append(JournalLine::Moving {
                    ids: restore.changes.clone(),
                    to,
                    target: restore.target.map(|kept| kept.hash.to_string()),
                    temp: JournalPath::of_name(&temp),
                    stored: stored && to == ChangeState::Undone,
                    at,
                })?;
                if !restore.foreign {
                    return Ok(None);
                }
                // Forced over somebody's work: that is a change of its own, and can be undone like any other.
                let id = inner.index.next_id();
                let kept = |version: &FileSnapshot| ContentDescriptor {
                    hash: version.hash(),
                    bytes: version.fingerprint.bytes,
                    mode: version.mode,
                    stored: small(version),
                };
                inner.append(JournalLine::Begin {
                    id,
                    call: run.forced.clone(),
                    session: restore.session.clone(),
                    at: crate::now_millis(),
                    path: JournalPath::of(&restore.path),
                    before: restore.current.as_ref().map(kept).map(Into::into),
                    after: restore.target.map(Into::into),
                    temp: JournalPath::of_name(&temp),
                })?;
                Ok(Some(id))
            })
            .map_err(unrecorded)?;
        let made = apply_restore(restore, &temp);
        let ended = if made.is_ok() { to } else { opposite_state(to) };
        // Where this fails, the next opening finds out by itself.
        let _ = self.with_lock(|inner| {
            if let Some(id) = overwriting {
                let state = if made.is_ok() { ChangeState::Done } else { ChangeState::Failed };
                inner.append(JournalLine::State { ids: vec![id], state, at: 0 })?;
            }
            inner.append(JournalLine::State { ids: restore.changes.clone(), state: ended, at })
        });
        made
    }

    /// Another file failed: this one goes back to what it was, as far as that can be done.
    fn roll_back(&self, restore: &FileRestore, run: &UndoRun) {
        let current = restore.current.clone();
        let there = read_snapshot(&restore.path, u64::MAX).ok().flatten();
        let back = FileRestore {
            then: restore.now.clone(),
            now: restore.then.clone(),
            target: current.map(|version| ContentDescriptor {
                hash: version.hash(),
                bytes: version.fingerprint.bytes,
                mode: version.mode,
                stored: true,
            }),
            current: there,
            foreign: false,
            ..restore.clone()
        };
        let _ = self.restore_file(&back, &UndoRun { to: opposite_state(run.to), ..run.clone() });
    }
}

fn apply_restore(restore: &FileRestore, temp: &std::ffi::OsStr) -> Result<(), ChangeProblem> {
    match (&restore.then, &restore.current) {
        (Some(then), current) => {
            let mode = restore.target.map(|kept| kept.mode).filter(|mode| *mode != 0);
            let mut place = AnchoredPath::create_parents(&restore.path)?;
            let new = ReplaceRequest { before: current.as_ref(), content: then, mode, temp };
            put_content(&mut place, new, || Ok(())).1.map(drop)
        }
        (None, Some(current)) => remove_file(&AnchoredPath::open_parent(&restore.path)?, temp, current),
        (None, None) => Ok(()),
    }
}

pub(super) fn opposite_state(state: ChangeState) -> ChangeState {
    match state {
        ChangeState::Undone => ChangeState::Done,
        ChangeState::Done | ChangeState::Begun | ChangeState::Failed => ChangeState::Undone,
    }
}

fn descriptor_hash(kept: Option<ContentDescriptor>) -> Option<ContentHash> {
    kept.map(|kept| kept.hash)
}

fn conflict_reason(now: Option<ContentHash>, expected: Option<ContentHash>) -> String {
    match (now, expected) {
        (None, _) => "has been removed since",
        (Some(_), None) => "has been created again since",
        (Some(_), Some(_)) => "has been changed since by someone else",
    }
    .to_owned()
}
