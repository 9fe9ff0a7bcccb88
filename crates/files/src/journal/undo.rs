//! Undo and redo: planning, conflicts, and all-or-nothing execution.
//!
//! An undo works file by file: the content after the newest change must still be there, and the content before the oldest
//! change comes back in one step. A redo does the reverse.
//! All files are checked before one is changed, and if one fails the others are rolled back.

use super::line::ChangeState;
use super::restore::UndoRun;
use super::select::{UndoSelector, select_changes};
use super::{ContentDescriptor, Journal, JournalChange};
use crate::replace::ChangeProblem;
use crate::{ContentHash, FileProblem, FileSnapshot, read_snapshot};
use std::collections::BTreeMap;
use toolgate_proto::{AbsPath, CallId, SessionId};

/// What to do if a file was modified after the changes that are to be undone or redone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictHandling {
    /// Refuse, and change no file.
    Refuse,
    /// Overwrite the file. That is recorded as a change of its own, so it can be undone.
    Overwrite,
}

/// What an undo or redo would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoPlan {
    /// The calls whose changes are undone or redone, in that order.
    pub calls: Vec<(SessionId, CallId)>,
    /// What happens to each file.
    pub restores: Vec<FileRestore>,
    /// Why it would be refused; empty if it would not.
    pub conflicts: Vec<UndoConflict>,
    /// The state that the changes get.
    to: ChangeState,
}

/// What an undo or redo does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileRestore {
    /// The real path of the file.
    pub path: AbsPath,
    /// The numbers of the changes that are undone or redone.
    pub changes: Vec<u64>,
    /// The content of the file before; `None` if it does not exist.
    pub now: Option<Vec<u8>>,
    /// The content of the file afterwards; `None` if it is deleted.
    pub then: Option<Vec<u8>>,
    /// The permission bits before and afterwards, if the changes changed them and they are still as the changes left them.
    pub mode_change: Option<(u32, u32)>,
    /// The snapshot behind `now`, which the file must still have when it is restored.
    pub(super) current: Option<FileSnapshot>,
    /// The descriptor of `then`.
    pub(super) target: Option<ContentDescriptor>,
    /// Whether the current content was made by none of the changes, so that a restore overwrites it.
    pub(super) is_foreign: bool,
    /// The session of the changes.
    pub(super) session: SessionId,
}

impl FileRestore {
    /// Whether content that none of the changes made is overwritten. It is kept as a change of its own, which an undo
    /// brings back.
    pub fn overwrites_other_content(&self) -> bool {
        self.is_foreign
    }
}

/// Why a file cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndoConflict {
    /// The real path of the file.
    pub path: AbsPath,
    /// The reason, as the end of a sentence that starts with the path.
    pub reason: String,
    /// Whether [`ConflictHandling::Overwrite`] restores the file all the same.
    pub forcible: bool,
}

/// What an undo or redo did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndoOutcome {
    /// The calls whose changes were undone or redone, in that order.
    pub calls: Vec<(SessionId, CallId)>,
    /// What happened to each file.
    pub restores: Vec<FileRestore>,
}

/// Why an undo or redo changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoProblem {
    /// The journal has no change that was selected and can be undone or redone.
    NoChange,
    /// Files were modified since, or their content is not stored.
    Conflicts(Vec<UndoConflict>),
    /// A file could not be restored; the files before it were rolled back.
    Failed {
        /// The real path of the file.
        path: AbsPath,
        /// Why it could not be restored.
        problem: ChangeProblem,
    },
    /// The journal itself could not be read or written.
    Journal(FileProblem),
}

impl std::fmt::Display for UndoProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoChange => f.write_str("there is no such change to undo or redo"),
            Self::Conflicts(conflicts) => {
                let reasons: Vec<String> = conflicts
                    .iter()
                    .map(|conflict| format!("`{}` {}", conflict.path, conflict.reason))
                    .collect();
                f.write_str(&reasons.join("; "))
            }
            Self::Failed { path, problem } => write!(f, "`{path}` could not be restored: {problem}"),
            Self::Journal(problem) => write!(f, "the undo journal cannot be used: {problem}"),
        }
    }
}

impl std::error::Error for UndoProblem {}

impl From<FileProblem> for UndoProblem {
    fn from(problem: FileProblem) -> Self {
        Self::Journal(problem)
    }
}

/// Reads one of the two contents of a change.
type ContentAccessor = fn(&JournalChange) -> Option<ContentDescriptor>;

impl Journal {
    /// Plans an undo. Changes no file.
    pub fn plan_undo(&self, which: &UndoSelector) -> Result<UndoPlan, UndoProblem> {
        self.plan(which, ChangeState::Undone)
    }

    /// Plans a redo. Changes no file.
    pub fn plan_redo(&self, which: &UndoSelector) -> Result<UndoPlan, UndoProblem> {
        self.plan(which, ChangeState::Done)
    }

    /// Undoes changes: all of them or none.
    pub fn undo(&self, which: &UndoSelector, how: ConflictHandling) -> Result<UndoOutcome, UndoProblem> {
        self.apply_plan(self.plan_undo(which)?, how)
    }

    /// Redoes changes that were undone: all of them or none.
    pub fn redo(&self, which: &UndoSelector, how: ConflictHandling) -> Result<UndoOutcome, UndoProblem> {
        self.apply_plan(self.plan_redo(which)?, how)
    }

    /// What an undo or redo would change, and what speaks against it.
    fn plan(&self, which: &UndoSelector, to: ChangeState) -> Result<UndoPlan, UndoProblem> {
        let selected = select_changes(self.list()?, which, to);
        if selected.is_empty() {
            return Err(UndoProblem::NoChange);
        }
        let mut calls: Vec<(SessionId, CallId)> = Vec::new();
        for change in &selected {
            let call = (change.session.clone(), change.call.clone());
            if !calls.contains(&call) {
                calls.push(call);
            }
        }
        let mut by_path: BTreeMap<std::path::PathBuf, Vec<JournalChange>> = BTreeMap::new();
        for change in selected {
            by_path.entry(change.path.as_path().to_path_buf()).or_default().push(change);
        }
        let mut plan = UndoPlan { calls, restores: Vec::new(), conflicts: Vec::new(), to };
        for changes in by_path.into_values() {
            self.plan_file(&changes, &mut plan)?;
        }
        Ok(plan)
    }

    /// Adds to the plan what happens to one file, or why it cannot be restored.
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
                plan.conflicts.push(conflict(format!("cannot be read: {problem}"), false));
                return Ok(());
            }
        };
        let now = current.as_ref().map(FileSnapshot::hash);
        let expected = content_hash(from(first));
        let is_foreign = now != expected;
        if is_foreign {
            plan.conflicts.push(conflict(conflict_reason(now, expected), true));
        }
        let is_chain = changes.windows(2).all(|pair| match pair {
            [one, next] => content_hash(into(one)) == content_hash(from(next)),
            _ => true,
        });
        if !is_chain {
            plan.conflicts.push(conflict("was also changed by other calls in between".to_owned(), true));
        }
        let target = into(last);
        let then = match target.map(|content| self.content(&content)).transpose() {
            Ok(then) => then,
            Err(problem) => {
                plan.conflicts.push(conflict(format!("cannot be restored: {problem}"), false));
                return Ok(());
            }
        };
        let mode_change = mode_change(from(first), target, current.as_ref());
        plan.restores.push(FileRestore {
            path,
            mode_change,
            changes: changes.iter().map(|change| change.id).collect(),
            now: current.as_ref().map(|snapshot| snapshot.bytes.clone()),
            then,
            current,
            target,
            is_foreign,
            session: first.session.clone(),
        });
        Ok(())
    }

    /// Makes the changes of a plan, all or none.
    pub(super) fn apply_plan(
        &self,
        plan: UndoPlan,
        how: ConflictHandling,
    ) -> Result<UndoOutcome, UndoProblem> {
        let blocks = |conflict: &UndoConflict| how == ConflictHandling::Refuse || !conflict.forcible;
        if plan.conflicts.iter().any(blocks) {
            return Err(UndoProblem::Conflicts(plan.conflicts));
        }
        let _in_progress = self.lock_in_progress()?;
        let newest =
            self.list()?.iter().map(|change| change.moved_at_millis.max(change.applied_at_millis)).max();
        let overwritten = plan.restores.iter().find(|restore| restore.overwrites_other_content());
        let run = UndoRun {
            to: plan.to,
            at: crate::now_millis().max(newest.unwrap_or(0) + 1),
            overwrite_call: overwritten
                .map(|restore| (restore.session.clone(), CallId::new(crate::generate_id("undo_")))),
        };
        let mut restored: Vec<(&FileRestore, Option<u64>)> = Vec::new();
        for restore in &plan.restores {
            match self.restore_file(restore, &run) {
                Ok(overwrite) => restored.push((restore, overwrite)),
                Err(problem) => {
                    for (restored, overwrite) in restored.into_iter().rev() {
                        self.roll_back(restored, &run, overwrite);
                    }
                    return Err(UndoProblem::Failed { path: restore.path.clone(), problem });
                }
            }
        }
        Ok(UndoOutcome { calls: plan.calls, restores: plan.restores })
    }
}

/// The state from which an undo or redo leads to `state`, and to which a rollback leads.
pub(super) fn opposite_state(state: ChangeState) -> ChangeState {
    match state {
        ChangeState::Undone => ChangeState::Done,
        ChangeState::Done | ChangeState::Begun | ChangeState::Failed => ChangeState::Undone,
    }
}

/// The hash of a content; `None` for a file that is absent.
pub(super) fn content_hash(content: Option<ContentDescriptor>) -> Option<ContentHash> {
    content.map(|content| content.hash)
}

/// The permission bits that a restore changes. A mode that is not known, or that another program changed since, stays.
fn mode_change(
    from: Option<ContentDescriptor>,
    target: Option<ContentDescriptor>,
    current: Option<&FileSnapshot>,
) -> Option<(u32, u32)> {
    let (from, to, now) = (from?.mode, target?.mode, current?.mode);
    // As for a file that is created again, set-user-ID and set-group-ID do not come back.
    let then = to & 0o777;
    (from != 0 && to != 0 && from != to && now == from && now != then).then_some((now, then))
}

/// Why a file cannot be restored, in words.
fn conflict_reason(now: Option<ContentHash>, expected: Option<ContentHash>) -> String {
    match (now, expected) {
        (None, _) => "has been deleted since",
        (Some(_), None) => "has been created since by another program or call",
        (Some(_), Some(_)) => "has been modified since by another program or call",
    }
    .to_owned()
}
