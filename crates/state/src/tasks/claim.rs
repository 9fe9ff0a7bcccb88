//! Claims: which status changes are allowed, and by which owner.

use super::task_item::{TaskChange, TaskError, TaskItem, TaskStatus};
use super::task_rows::open_blockers;
use rusqlite::Transaction;

/// The owner after a change, once the claim in it is checked. INVARIANT: called inside a write transaction, so that of
/// two claims the second one sees the first.
pub(super) fn check_claim(
    rows: &Transaction<'_>,
    list: i64,
    task: &TaskItem,
    change: &TaskChange,
) -> Result<Option<String>, TaskError> {
    let given = change.owner.clone().map(|owner| Some(owner).filter(|owner| !owner.is_empty()));
    let claims = change.status == Some(TaskStatus::InProgress);
    if !claims {
        return Ok(given.unwrap_or_else(|| task.owner.clone()));
    }
    let claimant = given.clone().flatten().or_else(|| change.claimant.clone());
    match (&task.owner, task.status) {
        (Some(owner), TaskStatus::InProgress) if claimant.as_ref() != Some(owner) => {
            return Err(TaskError::Claimed { number: task.number, owner: owner.clone() });
        }
        (Some(_) | None, _) => {}
    }
    let blockers = open_blockers(rows, list, task.number)?;
    if !blockers.is_empty() {
        return Err(TaskError::Blocked { number: task.number, blockers });
    }
    // A task that was assigned before it is begun keeps its owner.
    Ok(given.unwrap_or_else(|| task.owner.clone().or(claimant)))
}
