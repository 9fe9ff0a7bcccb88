//! Git worktrees for sessions: where they are, what git runs, and what becomes of them.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use toolgate_gate::{ApprovalAnswer, ApprovalRequest, Approver, CallOptions, Gate, GateParts, Session};
use toolgate_policy::{Layer, LayerRules, RawPolicy};
use toolgate_proto::{AbsPath, CallResult, Code, ToolCall};
use toolgate_tools::{LeftWorktree, Toolset, enter_worktree, leave_worktree, register};

/// A user who agrees to everything, and counts how often.
#[derive(Default)]
struct AgreeingUser {
    asked: AtomicUsize,
}

impl Approver for AgreeingUser {
    fn name(&self) -> &str {
        "user"
    }

    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(ApprovalAnswer::Once))
    }
}

/// A repository with one commit, and a session in it that may edit everything.
struct WorktreeFixture {
    dir: tempfile::TempDir,
    gate: Gate,
    session: Session,
    user: Arc<AgreeingUser>,
    runtime: tokio::runtime::Runtime,
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

impl WorktreeFixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("repo");
        std::fs::create_dir(&root).unwrap();
        git(&root, &["init", "-q", "-b", "main"]);
        std::fs::write(root.join("file"), "one\n").unwrap();
        git(&root, &["add", "file"]);
        git(&root, &["commit", "-q", "-m", "first"]);
        Self::in_repository(dir, &root)
    }

    fn in_repository(dir: tempfile::TempDir, root: &Path) -> Self {
        let root = AbsPath::new(root).unwrap();
        let mut rules = LayerRules::new(Layer::User, root.clone());
        rules.allow = ["Edit", "Write", "EnterWorktree", "ExitWorktree"].map(Into::into).to_vec();
        let user = Arc::new(AgreeingUser::default());
        let gate = Gate::new(
            GateParts::default()
                .with_policy(RawPolicy::default().with_layers(vec![rules]))
                .with_approvers(vec![Arc::clone(&user) as Arc<dyn Approver>]),
        );
        register(&gate, Toolset::Claude).unwrap();
        let session = super::file_fixture::session(&root, "one");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { dir, gate, session, user, runtime }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("repo").join(name)
    }

    fn call(&self, tool: &str, input: &Value) -> CallResult {
        let call = ToolCall::new("call", tool, input.to_string());
        self.runtime.block_on(self.gate.call(&self.session, call, CallOptions::default())).result
    }

    fn write_here(&self, name: &str) {
        let file = self.session.workspace().cwd.join(name);
        self.call("Write", &json!({ "file_path": file, "content": "x" })).unwrap();
    }
}

#[test]
fn a_session_works_in_a_worktree_and_returns() {
    let fixture = WorktreeFixture::new();
    let output = fixture.call("EnterWorktree", &json!({ "name": "fix" })).unwrap();
    assert_eq!(output.structured.unwrap()["worktreeBranch"], "worktree-fix");
    assert_eq!(fixture.session.workspace().cwd.as_path(), fixture.path(".worktrees/fix"));
    fixture.write_here("new");
    assert!(fixture.path(".worktrees/fix/new").exists() && !fixture.path("new").exists());
    // The folder is not in the way of the checkout, and a second one is refused while this one lasts.
    assert_eq!(git(&fixture.path(""), &["status", "--porcelain"]), "");
    assert_eq!(fixture.call("EnterWorktree", &json!({ "name": "b" })).unwrap_err().code, Code::Worktree);
    // What would be lost is not removed.
    let refusal = fixture.call("ExitWorktree", &json!({ "action": "remove" })).unwrap_err();
    assert!(refusal.reason.contains("1 changed file and 0 commits"), "{refusal}");
    git(&fixture.path(".worktrees/fix"), &["add", "new"]);
    git(&fixture.path(".worktrees/fix"), &["commit", "-q", "-m", "second"]);
    let refusal = fixture.call("ExitWorktree", &json!({ "action": "remove" })).unwrap_err();
    assert!(refusal.reason.contains("0 changed files and 1 commit "), "{refusal}");
    fixture.call("ExitWorktree", &json!({ "action": "keep" })).unwrap();
    assert_eq!(fixture.session.workspace().cwd.as_path(), fixture.path("x").parent().unwrap());
    assert!(fixture.call("ExitWorktree", &json!({ "action": "keep" })).is_err());
    // It is entered again by its path, and removed once its commit is merged.
    let path = fixture.path(".worktrees/fix");
    fixture.call("EnterWorktree", &json!({ "path": path })).unwrap();
    git(&fixture.path(""), &["merge", "-q", "worktree-fix"]);
    fixture.call("ExitWorktree", &json!({ "action": "remove" })).unwrap();
    assert!(!path.exists());
    assert!(!git(&fixture.path(""), &["branch"]).contains("worktree-fix"));
    assert_eq!(fixture.user.asked.load(Ordering::SeqCst), 0);
    // Changes are lost where the call says so, and the user agrees whatever the rules are.
    fixture.call("EnterWorktree", &json!({})).unwrap();
    fixture.write_here("scrap");
    fixture.call("ExitWorktree", &json!({ "action": "remove", "discard_changes": true })).unwrap();
    assert_eq!(fixture.user.asked.load(Ordering::SeqCst), 1);
    assert_eq!(git(&fixture.path(""), &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn an_unchanged_worktree_is_cleaned_up_and_a_changed_one_is_named() {
    let fixture = WorktreeFixture::new();
    let session = &fixture.session;
    assert_eq!(leave_worktree(session), Ok(None));
    enter_worktree(session, "idle").unwrap();
    assert!(matches!(leave_worktree(session), Ok(Some(LeftWorktree::Removed(_)))));
    assert!(!fixture.path(".worktrees/idle").exists());
    enter_worktree(session, "busy").unwrap();
    fixture.write_here("new");
    match leave_worktree(session) {
        Ok(Some(LeftWorktree::Kept(worktree, changes))) => {
            assert_eq!((worktree.name.as_str(), changes.files, changes.commits), ("busy", 1, 0));
        }
        other => panic!("{other:?}"),
    }
    assert!(fixture.path(".worktrees/busy/new").exists());
    assert!(!git(&fixture.path(""), &["worktree", "list", "--porcelain"]).contains("locked"));
}

#[test]
fn git_runs_nothing_that_the_repository_names() {
    let fixture = WorktreeFixture::new();
    let (top, marker) = (fixture.path(""), fixture.dir.path().canonicalize().unwrap().join("ran"));
    let program = fixture.dir.path().canonicalize().unwrap().join("evil");
    std::fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", marker.display())).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let hooks = top.join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    for hook in ["post-checkout", "reference-transaction", "post-index-change", "pre-commit"] {
        std::fs::copy(&program, hooks.join(hook)).unwrap();
    }
    let evil = program.to_str().unwrap();
    std::fs::write(top.join(".gitattributes"), "* filter=evil diff=evil merge=evil\n").unwrap();
    git(&top, &["add", ".gitattributes"]);
    git(&top, &["-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "attributes"]);
    for key in [
        "filter.evil.smudge",
        "filter.evil.clean",
        "filter.evil.process",
        "core.fsmonitor",
        "diff.evil.textconv",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "alias.worktree",
        "alias.status",
        "gpg.program",
    ] {
        git(&top, &["config", key, evil]);
    }
    std::fs::write(top.join(".git/info/attributes"), "* filter=evil\n").unwrap();
    let _ = std::fs::remove_file(&marker);
    fixture.call("EnterWorktree", &json!({ "name": "a" })).unwrap();
    assert_eq!(std::fs::read_to_string(top.join(".worktrees/a/file")).unwrap(), "one\n");
    fixture.write_here("new");
    assert!(fixture.call("ExitWorktree", &json!({ "action": "remove" })).is_err());
    fixture.call("ExitWorktree", &json!({ "action": "remove", "discard_changes": true })).unwrap();
    let ran = std::fs::read_to_string(&marker).unwrap_or_default();
    assert_eq!(ran, "", "git ran a program of the repository");
}

#[test]
fn a_worktree_is_never_outside_the_folder() {
    let fixture = WorktreeFixture::new();
    for name in ["../out", "..", "a/b", "", ".hidden", "-f", "a..b", "x.lock", "a b", "ü"] {
        assert!(fixture.call("EnterWorktree", &json!({ "name": name })).is_err(), "{name}");
    }
    let elsewhere = fixture.dir.path().canonicalize().unwrap().join("elsewhere");
    git(&fixture.path(""), &["worktree", "add", "-q", elsewhere.to_str().unwrap()]);
    for path in [elsewhere.clone(), fixture.path(""), fixture.path(".worktrees"), fixture.path(".git")] {
        assert!(fixture.call("EnterWorktree", &json!({ "path": path })).is_err(), "{}", path.display());
    }
    assert!(fixture.call("EnterWorktree", &json!({ "name": "a", "path": "b" })).is_err());
    // A folder that leads elsewhere.
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, fixture.path(".worktrees")).unwrap();
    assert!(fixture.call("EnterWorktree", &json!({ "name": "a" })).is_err());
    assert!(!elsewhere.join("a").exists());
    assert!(fixture.session.entered_root().is_none());
}

#[test]
fn without_a_repository_there_is_no_worktree() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("repo");
    std::fs::create_dir(&root).unwrap();
    let fixture = WorktreeFixture::in_repository(dir, &root);
    let refusal = fixture.call("EnterWorktree", &json!({ "name": "a" })).unwrap_err();
    assert!(refusal.reason.contains("in no git repository"), "{refusal}");
    assert!(!fixture.path(".worktrees").exists());
}
