//! Which changes an undo or redo is about.

use super::JournalChange;
use super::line::ChangeState;
use super::undo::opposite_state;
use std::cmp::Reverse;
use toolgate_proto::{AbsPath, CallId, SessionId};

/// Which changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoSelector {
    /// Those of the last call that changed something.
    Last(UndoFilter),
    /// Those of one call, in one session or in any.
    Call(CallId, Option<SessionId>),
    /// Those of the last so many calls.
    Steps(usize, UndoFilter),
    /// Those of a whole session.
    Session(SessionId),
}

/// Among which calls the last ones are looked for. By default among all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoFilter {
    /// Only calls of this session.
    pub session: Option<SessionId>,
    /// Only calls that changed something beneath one of these; none stands for anywhere.
    pub beneath: Vec<AbsPath>,
}

impl UndoFilter {
    /// Calls of one session.
    pub fn session(id: impl Into<SessionId>) -> Self {
        Self { session: Some(id.into()), beneath: Vec::new() }
    }

    fn matches(&self, change: &JournalChange) -> bool {
        self.session.as_ref().is_none_or(|session| *session == change.session)
            && (self.beneath.is_empty() || self.beneath.iter().any(|root| change.path.is_under(root)))
    }
}

/// The changes in the order in which they are moved over: undo begins with the newest, redo with what was undone last,
/// the oldest of it first.
pub(super) fn select_changes(
    newest_first: Vec<JournalChange>,
    which: &UndoSelector,
    to: ChangeState,
) -> Vec<JournalChange> {
    let mut movable: Vec<JournalChange> =
        newest_first.into_iter().filter(|change| change.state == opposite_state(to)).collect();
    if to == ChangeState::Done {
        movable.sort_by_key(|change| (Reverse(change.moved_at_millis), change.id));
    }
    match which {
        UndoSelector::Call(call, session) => movable.retain(|change| {
            change.call == *call && session.as_ref().is_none_or(|session| *session == change.session)
        }),
        UndoSelector::Session(session) => movable.retain(|change| change.session == *session),
        UndoSelector::Last(among) => return take_first_calls(movable, 1, among),
        UndoSelector::Steps(count, among) => return take_first_calls(movable, *count, among),
    }
    movable
}

/// All changes of the first so many calls, also those that are not beneath the roots: a call is moved over as a whole.
fn take_first_calls(changes: Vec<JournalChange>, count: usize, among: &UndoFilter) -> Vec<JournalChange> {
    let name = |change: &JournalChange| (change.session.clone(), change.call.clone());
    let mut calls: Vec<(SessionId, CallId)> = Vec::new();
    for change in changes.iter().filter(|change| among.matches(change)) {
        if calls.len() == count {
            break;
        }
        if !calls.contains(&name(change)) {
            calls.push(name(change));
        }
    }
    changes.into_iter().filter(|change| calls.contains(&name(change))).collect()
}
