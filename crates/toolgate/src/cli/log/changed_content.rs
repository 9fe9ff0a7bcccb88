//! What a call changed in files, from the undo journal.

use crate::cli::context::CliContext;
use toolgate::files::{ChangeState, JournalChange};
use toolgate::{Journal, JournalLimits};
use toolgate_tools::unified_diff;

/// The most lines of one diff.
const MAX_DIFF_LINES: usize = 400;

/// The changes in the undo journal.
pub(super) struct ChangedContent {
    /// `None` if there is no journal, or it cannot be opened.
    journal: Option<Journal>,
    /// All changes, oldest first.
    changes: Vec<JournalChange>,
}

impl ChangedContent {
    /// Opens the journal of the state directory. A missing one has no changes.
    pub(super) fn open(context: &CliContext) -> Self {
        let journal =
            context.journal_dir().and_then(|dir| Journal::open(&dir, JournalLimits::default()).ok());
        let mut changes = journal.as_ref().and_then(|journal| journal.list().ok()).unwrap_or_default();
        changes.reverse();
        Self { journal, changes }
    }

    /// A unified diff for each file that the call changed.
    pub(super) fn diffs_of(&self, session: &str, call: &str) -> Vec<String> {
        let of_call =
            |change: &&JournalChange| change.session.as_str() == session && change.call.as_str() == call;
        self.changes.iter().filter(of_call).map(|change| self.diff(change)).collect()
    }

    /// The diff of one change.
    fn diff(&self, change: &JournalChange) -> String {
        let path = change.path.to_string();
        let load =
            |side| self.journal.as_ref().and_then(|journal| journal.changed_content(change, side).ok());
        match (load(change.before), load(change.after)) {
            (Some(before), Some(after)) => {
                unified_diff(&path, before.as_deref(), after.as_deref(), MAX_DIFF_LINES)
            }
            (Some(_), None) => explain_missing_content(change),
            (None, Some(_)) => {
                format!("{path}: changed; the content before the call is not in the undo journal")
            }
            (None, None) => format!("{path}: changed; neither content is in the undo journal"),
        }
    }
}

/// Why there is no diff of a change whose old content is stored, and how to see that content. The new content of a change is
/// in the file until the file is changed again, and only toolgate keeps it then.
fn explain_missing_content(change: &JournalChange) -> String {
    let (path, call) = (&change.path, change.call.as_str());
    let reason =
        "the file was changed since by another program, so there is no diff with what the call wrote";
    match change.state {
        ChangeState::Done => format!(
            "{path}: changed; {reason}; `toolgate undo {call} --dry-run` compares the content before the call with the \
             file as it is now"
        ),
        ChangeState::Begun | ChangeState::Failed | ChangeState::Undone => {
            format!("{path}: changed; {reason}")
        }
    }
}
