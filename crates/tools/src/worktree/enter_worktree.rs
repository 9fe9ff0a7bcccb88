//! `EnterWorktree`: work in a git worktree.

use super::{
    WORKTREE_GROUP, default_name, enter_existing, enter_worktree, find_worktrees, project_dir,
    worktree_refusal,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_files::run_blocking;
use toolgate_gate::{CallContext, Cleared, Session, Tool, ToolSpec};
use toolgate_process::{GitWorktree, WORKTREE_FOLDER};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, Intent, Output, Refusal, WriteKind};

/// Makes or enters a worktree.
pub(crate) struct EnterWorktreeTool;

/// Input of [`EnterWorktreeTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnterWorktreeInput {
    /// The name of a new worktree; default: one for this session.
    name: Option<String>,
    /// Instead: the directory of one that exists, in `.worktrees` of the repository.
    path: Option<String>,
}

impl EnterWorktreeInput {
    /// The directory that the call is about. The repository is the project's, whose root is its top.
    fn target(&self, context: &CallContext) -> AbsPath {
        match &self.path {
            Some(path) => context.absolute_path(path).lexical(),
            None => {
                let name = self.name.clone().unwrap_or_else(|| default_name(&context.session));
                project_dir(&context.session).join(WORKTREE_FOLDER).join(name)
            }
        }
    }
}

impl Tool for EnterWorktreeTool {
    type Input = EnterWorktreeInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "EnterWorktree",
            "Makes a git worktree of the last commit in `.worktrees/NAME`, on the branch `worktree-NAME`, and works there from \
             now on. For changes that must not disturb the checkout. End it with ExitWorktree.",
        )
        .with_group(WORKTREE_GROUP)
        .with_destructive(false);
        spec.title = "Enter a git worktree".to_owned();
        spec.input_examples = vec![json!({ "name": "fix-parser" })];
        spec
    }

    /// Refuses a name together with a path. Whether a path is in the folder of worktrees is checked against the files.
    fn check(&self, input: &EnterWorktreeInput) -> Result<(), Refusal> {
        match (&input.name, &input.path) {
            (Some(_), Some(_)) => {
                Err(Refusal::new(Code::BadArgument, "`name` and `path` exclude each other"))
            }
            (Some(_), None) | (None, Some(_) | None) => Ok(()),
        }
    }

    /// Declares the directory of the worktree as a tree that changes, so that rules for it apply.
    fn intent(&self, input: &EnterWorktreeInput, context: &CallContext) -> Intent {
        let path = input.target(context);
        let verb = if input.path.is_some() { "work in" } else { "make a git worktree in" };
        Intent::new(format!("{verb} {path}"), [Effect::Write { path, kind: WriteKind::Tree }])
    }

    /// Refuses what cannot succeed before the user is asked.
    async fn guard(&self, input: &EnterWorktreeInput, context: &CallContext) -> Result<(), Refusal> {
        let (session, target) = (context.session.clone(), input.target(context));
        let exists = input.path.is_some();
        let checked = run_blocking(move || check_target(&session, &target, exists)).await;
        checked.map_err(|problem| worktree_refusal(problem.to_string()))?.map_err(worktree_refusal)
    }

    /// Makes the worktree, and moves the session into it.
    async fn run(&self, input: EnterWorktreeInput, cleared: Cleared) -> CallResult {
        let session = cleared.context().session.clone();
        let target = input.target(cleared.context());
        let exists = input.path.is_some();
        let entered = run_blocking(move || match exists {
            true => {
                let worktrees = find_worktrees(&session)?;
                let worktree = worktrees.find(&target)?;
                enter_existing(&session, &worktrees, worktree)
            }
            false => enter_worktree(&session, &file_name(&target)),
        });
        let GitWorktree { path, branch, name, .. } = entered
            .await
            .map_err(|problem| worktree_refusal(problem.to_string()))?
            .map_err(worktree_refusal)?;
        Ok(Output::text(format!("working in {path} on branch {branch}; ExitWorktree returns"))
            .structured(json!({ "worktreePath": path, "worktreeBranch": branch, "name": name })))
    }
}

/// Whether a worktree can be made or entered.
fn check_target(session: &Session, target: &AbsPath, exists: bool) -> Result<(), String> {
    if let Some(root) = session.entered_root() {
        return Err(format!("the session works in `{root}` already; leave it with ExitWorktree"));
    }
    let worktrees = find_worktrees(session)?;
    if exists {
        return worktrees.find(target).map(|_| ());
    }
    if worktrees.path_of(&file_name(target))? != *target {
        return Err(format!(
            "the project is not the top of its repository, so its worktrees would be outside: `{}`",
            worktrees.top()
        ));
    }
    match toolgate_files::read_file_stamp(target) == toolgate_files::FileStamp::Absent {
        true => Ok(()),
        false => Err(format!("`{target}` exists; enter it with `path`, or give another name")),
    }
}

/// The last part of a path.
fn file_name(path: &AbsPath) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
