//! Selection of the changes that an undo or redo is about.

use super::JournalChange;
use super::line::ChangeState;
use super::undo::opposite_state;
use std::cmp::Reverse;
use toolgate_proto::{AbsPath, CallId, SessionId};

/// Which changes to undo or redo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoSelector {
    /// The changes of the last call that changed files.
    Last(UndoFilter),
    /// The changes of one call, of one session if given: call ids are unique only within a session.
    Call(CallId, Option<SessionId>),
    /// The changes of the last calls, this many.
    Steps(usize, UndoFilter),
    /// The changes of a whole session.
    Session(SessionId),
}

/// Which calls count when the last ones are selected. The default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndoFilter {
    /// Only calls of this session.
    pub session: Option<SessionId>,
    /// Only calls that changed a file in one of these directories; empty means anywhere.
    pub beneath: Vec<AbsPath>,
}

impl UndoFilter {
    /// Selects among the calls of one session.
    pub fn session(id: impl Into<SessionId>) -> Self {
        Self { session: Some(id.into()), beneath: Vec::new() }
    }

    /// Counts only calls that changed files below these directories.
    pub fn with_beneath(mut self, beneath: Vec<AbsPath>) -> Self {
        self.beneath = beneath;
        self
    }

    /// Whether a change is of the session and below the directories that are asked for.
    fn matches(&self, change: &JournalChange) -> bool {
        self.session.as_ref().is_none_or(|session| *session == change.session)
            && (self.beneath.is_empty() || self.beneath.iter().any(|root| change.path.is_under(root)))
    }
}

/// The selected changes in the order in which they are undone or redone: undo starts with the one that was made or redone
/// last, redo with those that were undone last, the oldest of them first.
pub(super) fn select_changes(
    newest_first: Vec<JournalChange>,
    which: &UndoSelector,
    to: ChangeState,
) -> Vec<JournalChange> {
    let mut candidates: Vec<JournalChange> =
        newest_first.into_iter().filter(|change| change.state == opposite_state(to)).collect();
    if to == ChangeState::Undone {
        candidates.sort_by_key(|change| Reverse((change.applied_at_millis, change.id)));
    } else {
        candidates.sort_by_key(|change| (Reverse(change.moved_at_millis), change.id));
    }
    match which {
        UndoSelector::Call(call, session) => candidates.retain(|change| {
            change.call == *call && session.as_ref().is_none_or(|session| *session == change.session)
        }),
        UndoSelector::Session(session) => candidates.retain(|change| change.session == *session),
        UndoSelector::Last(filter) => return take_first_calls(candidates, 1, filter),
        UndoSelector::Steps(count, filter) => return take_first_calls(candidates, *count, filter),
    }
    candidates
}

/// All changes of the first `count` calls that match the filter, also those that do not match themselves: a call is undone
/// as a whole.
fn take_first_calls(changes: Vec<JournalChange>, count: usize, filter: &UndoFilter) -> Vec<JournalChange> {
    let call_of = |change: &JournalChange| (change.session.clone(), change.call.clone());
    let mut calls: Vec<(SessionId, CallId)> = Vec::new();
    for change in changes.iter().filter(|change| filter.matches(change)) {
        if calls.len() == count {
            break;
        }
        if !calls.contains(&call_of(change)) {
            calls.push(call_of(change));
        }
    }
    changes.into_iter().filter(|change| calls.contains(&call_of(change))).collect()
}
