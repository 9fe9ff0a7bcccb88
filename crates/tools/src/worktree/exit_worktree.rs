//! `ExitWorktree`: leave the git worktree, and keep or remove it.

use super::{WORKTREE_GROUP, find_worktrees, worktree_refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_files::run_blocking;
use toolgate_gate::{CallContext, Cleared, Session, Tool, ToolSpec};
use toolgate_process::{GitWorktree, WorktreeChanges};
use toolgate_proto::{CallResult, Effect, Intent, Output, Refusal, WriteKind, format_count};

/// Leaves a worktree.
pub(crate) struct ExitWorktreeTool;

/// Input of [`ExitWorktreeTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExitWorktreeInput {
    /// `keep` leaves the worktree and its branch; `remove` removes both.
    action: ExitAction,
    /// Remove it even if changed files or commits that no other branch has are lost.
    #[serde(default)]
    discard_changes: bool,
}

/// What becomes of the worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ExitAction {
    Keep,
    Remove,
}

impl Tool for ExitWorktreeTool {
    type Input = ExitWorktreeInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "ExitWorktree",
            "Returns from the git worktree to the checkout. `remove` is refused while there are uncommitted files or commits \
             that no other branch has, unless `discard_changes`.",
        )
        .with_group(WORKTREE_GROUP);
        spec.title = "Leave the git worktree".to_owned();
        spec.input_examples = vec![json!({ "action": "keep" }), json!({ "action": "remove" })];
        spec
    }

    /// A removal that may lose changes is one of a whole tree, about which policy always asks. Without changes nothing is
    /// lost that the repository does not have, and the guard sees to that.
    fn intent(&self, input: &ExitWorktreeInput, context: &CallContext) -> Intent {
        match (context.session.entered_root(), input.action, input.discard_changes) {
            (Some(path), ExitAction::Remove, true) => {
                let summary = format!("remove {path} with its changes");
                Intent::new(summary, [Effect::Write { path, kind: WriteKind::Tree }])
            }
            (_, ExitAction::Keep, _) | (_, ExitAction::Remove, false) | (None, ExitAction::Remove, true) => {
                Intent::new("leave the git worktree", [Effect::State { name: "worktree".to_owned() }])
            }
        }
    }

    /// Refuses to lose changes before the user is asked.
    async fn guard(&self, input: &ExitWorktreeInput, context: &CallContext) -> Result<(), Refusal> {
        let session = context.session.clone();
        let loses = input.action == ExitAction::Remove && !input.discard_changes;
        let found = run_blocking(move || inspect(&session)).await;
        let (worktree, changes) =
            found.map_err(|problem| worktree_refusal(problem.to_string()))?.map_err(worktree_refusal)?;
        if loses && !changes.is_empty() {
            let WorktreeChanges { files, commits, .. } = changes;
            let reason = format!(
                "`{}` has {} and {} that no other branch has",
                worktree.path,
                format_count(files as u64, "changed file", "changed files"),
                format_count(commits as u64, "commit", "commits")
            );
            return Err(worktree_refusal(reason)
                .hint("commit and merge them, keep the worktree, or set `discard_changes`"));
        }
        Ok(())
    }

    /// Moves the session back, and keeps or removes the worktree.
    async fn run(&self, input: ExitWorktreeInput, cleared: Cleared) -> CallResult {
        let session = cleared.context().session.clone();
        let action = input.action;
        let left = run_blocking(move || leave(&session, action)).await;
        let (worktree, changes) =
            left.map_err(|problem| worktree_refusal(problem.to_string()))?.map_err(worktree_refusal)?;
        let GitWorktree { path, branch, .. } = worktree;
        let message = match action {
            ExitAction::Remove => format!("removed {path} and the branch {branch}"),
            ExitAction::Keep => format!("left {path}; its branch is {branch}"),
        };
        Ok(Output::text(&message).structured(json!({
            "action": if action == ExitAction::Remove { "remove" } else { "keep" },
            "worktreePath": path,
            "worktreeBranch": branch,
            "changedFiles": changes.files,
            "commits": changes.commits,
            "message": message,
        })))
    }
}

/// The worktree of the session, and what would be lost with it.
fn inspect(session: &Session) -> Result<(GitWorktree, WorktreeChanges), String> {
    let path = session.entered_root().ok_or("the session is in no worktree")?;
    let worktrees = find_worktrees(session)?;
    let worktree = worktrees.find(&path)?;
    let changes = worktrees.changes(&worktree)?;
    Ok((worktree, changes))
}

/// Leaves the worktree. One that cannot be removed is still left: the session must be able to go on.
fn leave(session: &Session, action: ExitAction) -> Result<(GitWorktree, WorktreeChanges), String> {
    let (worktree, changes) = inspect(session)?;
    let worktrees = find_worktrees(session)?;
    session.leave_root();
    match action {
        ExitAction::Remove => worktrees.remove(&worktree)?,
        ExitAction::Keep => {
            // One that the user has unlocked already is as it should be.
            let _ = worktrees.unlock(&worktree);
        }
    }
    Ok((worktree, changes))
}
