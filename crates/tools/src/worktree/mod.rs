//! Git worktrees: a checkout of its own for a session or an agent, so that two of them do not change the same files.
//!
//! Worktrees are in the folder `.worktrees` of the repository and nowhere else, each on a branch `worktree-NAME`. git runs
//! no hook, filter or other program that the repository names. A worktree without changes is removed when it is left;
//! one with changes stays, and its name is reported.

mod enter_worktree;
mod exit_worktree;

pub(crate) use enter_worktree::EnterWorktreeTool;
pub(crate) use exit_worktree::ExitWorktreeTool;

use crate::shell::ShellTasks;
use toolgate_files::{ContentHash, DEFAULT_SEARCH_PATH};
use toolgate_gate::Session;
use toolgate_process::{GitWorktree, GitWorktrees, WorktreeChanges};
use toolgate_proto::{AbsPath, Code, Refusal};

/// The group of these tools.
const WORKTREE_GROUP: &str = "worktrees";
/// Characters of the hash in the name that a session's worktree gets.
const HASH_CHARS: usize = 8;

/// What became of a worktree that a session left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftWorktree {
    /// It had no changes, and was removed with its branch.
    Removed(GitWorktree),
    /// It has changes, and stays.
    Kept(GitWorktree, WorktreeChanges),
}

/// Makes a worktree and lets the session work in it: for a host that gives a session or a subagent a checkout of its own.
/// Blocks while git runs. [`leave_worktree`] is its end.
pub fn enter_worktree(session: &Session, name: &str) -> Result<GitWorktree, String> {
    if let Some(root) = session.entered_root() {
        return Err(format!("the session works in `{root}` already"));
    }
    let worktrees = find_worktrees(session)?;
    let worktree = worktrees.add(name)?;
    enter_existing(session, &worktrees, worktree)
}

/// Lets the session work in a worktree; one that it cannot enter is removed again if it has no changes.
fn enter_existing(
    session: &Session,
    worktrees: &GitWorktrees,
    worktree: GitWorktree,
) -> Result<GitWorktree, String> {
    if session.enter_root(worktree.path.clone()) {
        return Ok(worktree);
    }
    if worktrees.changes(&worktree).is_ok_and(WorktreeChanges::is_empty) {
        worktrees.remove(&worktree)?;
    }
    Err(format!("`{}` is outside the workspace", worktree.path))
}

/// Returns to the workspace that the session had before, and removes the worktree if nothing would be lost. `None` if the
/// session is in none. Blocks while git runs.
pub fn leave_worktree(session: &Session) -> Result<Option<LeftWorktree>, String> {
    let Some(path) = session.entered_root() else { return Ok(None) };
    session.leave_root();
    let worktrees = find_worktrees(session)?;
    let worktree = worktrees.find(&path)?;
    let changes = worktrees.changes(&worktree)?;
    if changes.is_empty() {
        worktrees.remove(&worktree)?;
        return Ok(Some(LeftWorktree::Removed(worktree)));
    }
    // One that the user has unlocked already is as it should be.
    let _ = worktrees.unlock(&worktree);
    Ok(Some(LeftWorktree::Kept(worktree, changes)))
}

/// The worktrees of the session's project.
fn find_worktrees(session: &Session) -> Result<GitWorktrees, String> {
    let config = session.state::<ShellTasks>().config();
    let path = config.environment.get("PATH").map_or(DEFAULT_SEARCH_PATH, String::as_str);
    GitWorktrees::discover(&project_dir(session), path)
}

/// The directory by which the session knows its project.
fn project_dir(session: &Session) -> AbsPath {
    let workspace = session.workspace();
    workspace.roots.first().unwrap_or(&workspace.cwd).clone()
}

/// The name of a session's worktree where the call gives none.
fn default_name(session: &Session) -> String {
    let hash = ContentHash::of(session.id().as_str().as_bytes()).to_string();
    format!("session-{}", hash.chars().take(HASH_CHARS).collect::<String>())
}

/// The refusal of an operation.
fn worktree_refusal(problem: String) -> Refusal {
    Refusal::new(Code::Worktree, problem)
}
