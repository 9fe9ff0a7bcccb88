//! guard: the tool's own preconditions, then file handles that reach what was granted and nothing else.

use super::judge::JudgedCall;
use super::settle::GrantedCall;
use crate::approve::QuestionChannels;
use crate::call_context::PipelineContext;
use crate::gate::Gate;
use crate::hook::RaisedHooks;
use crate::host_rules::HostRules;
use crate::permit::Cleared;
use crate::progress::CallProgress;
use crate::tool::ErasedCall;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use toolgate_files::{GrantedAccess, GrantedFiles, HiddenFileFilter, PathGrant, SecretFileMatcher};
use toolgate_policy::{CommandGuard, Policy, ReadFilter};
use toolgate_process::sandbox::{FileGuard, PathGuard};
use toolgate_proto::{
    AbsPath, CommandRights, Effect, Intent, PathFacts, PathScope, Refusal, Stage, Workspace, WriteKind,
};

/// A call that is ready to run.
pub(crate) struct PreparedCall {
    pub(crate) prepared: Box<dyn ErasedCall>,
    pub(crate) cleared: Cleared,
    /// How long the run may take where the caller set no deadline.
    pub(crate) timeout: Option<Duration>,
    /// The same handle that the tool has, to end it.
    pub(crate) progress: CallProgress,
    /// The run itself prompts the user.
    pub(crate) asks: bool,
}

/// Checks the tool's own preconditions, and opens nothing but what the verdict granted.
pub(crate) async fn guard(
    context: &PipelineContext<'_>,
    granted: GrantedCall,
) -> Result<PreparedCall, Refusal> {
    let GrantedCall { permit, valid, intent, facts, policy } = granted;
    context
        .await_unless_stopped(Stage::Guard, valid.prepared.guard(&context.call_context))
        .await
        .map_err(|refusal| refusal.at_stage(Stage::Guard))?;
    let progress = CallProgress::new(context.call.id.clone(), context.gate.event_bus.clone());
    let recorder =
        context.gate.journal.as_ref().map(|journal| {
            journal.recorder(context.call.id.clone(), context.call_context.session.id().clone())
        });
    let files = granted_files(context, &policy, &intent, &facts, MostAccess(GrantedAccess::Write))
        .with_recorder(recorder)
        .with_checks(Arc::clone(&context.gate.content_checks));
    let runs = intent.effects.iter().any(|effect| matches!(effect, Effect::Exec { .. }));
    let workspace = &context.call_context.workspace;
    let file_guard =
        if runs { guard_files(&policy, workspace, &permit.terms().rights) } else { FileGuard::default() };
    let asks = intent.effects.contains(&Effect::Ask);
    let channels = QuestionChannels {
        approvers: asks.then(|| Arc::clone(&context.snapshot.approvers)),
        timeout: context.gate.approval_timeout,
    };
    let mode = policy.mode();
    let raised = RaisedHooks::find(&context.snapshot.hooks, valid.identity(), (valid.input(), &intent, mode));
    let cleared = Cleared::new(
        permit,
        context.call.id.clone(),
        context.call_context.clone(),
        (files, HostRules::new(policy), file_guard),
        (progress.clone(), context.cancel.clone(), channels, context.gate.spill.clone()),
        raised,
    );
    Ok(PreparedCall { prepared: valid.prepared, cleared, timeout: valid.tool.spec.timeout, progress, asks })
}

/// What can be known before the user is asked: whether the tool's own preconditions hold, and what would change. They are
/// checked again after the answer, because files may change while a question is open.
pub(crate) async fn check_before_question(
    context: &PipelineContext<'_>,
    judged: &JudgedCall,
) -> Result<Option<String>, Refusal> {
    let call = &judged.screened.valid.prepared;
    let files = granted_files(
        context,
        &judged.policy.effective,
        &judged.intent,
        &judged.facts,
        MostAccess(GrantedAccess::Read),
    );
    let checking = async {
        call.guard(&context.call_context).await?;
        call.preview(&context.call_context, &files).await
    };
    let checking = async { checking.await.map_err(|refusal| refusal.at_stage(Stage::Guard)) };
    context.await_unless_stopped(Stage::Settle, checking).await
}

/// The most that file handles permit, whatever the intent names.
struct MostAccess(GrantedAccess);

impl MostAccess {
    /// The weaker of two accesses.
    fn limit(&self, access: GrantedAccess) -> GrantedAccess {
        match (&self.0, access) {
            (GrantedAccess::Write, GrantedAccess::Write) => GrantedAccess::Write,
            (GrantedAccess::Read | GrantedAccess::Write, _) => GrantedAccess::Read,
        }
    }
}

/// The paths that the intent names, as they were judged. Paths that policy inferred from a command line are
/// enforced by the sandbox, not by file handles. Files that a rule denies are not found below a granted tree.
fn granted_files(
    context: &PipelineContext<'_>,
    policy: &Arc<Policy>,
    intent: &Intent,
    facts: &PathFacts,
    most: MostAccess,
) -> GrantedFiles {
    let reach = intent.effects.iter().filter_map(|effect| {
        let (path, scope, access) = match effect {
            Effect::Read { path, scope } => (path, *scope, GrantedAccess::Read),
            Effect::Write { path, kind: WriteKind::Tree } => (path, PathScope::Tree, GrantedAccess::Write),
            Effect::Write { path, kind: WriteKind::Put | WriteKind::Edit | WriteKind::Delete } => {
                (path, PathScope::Entry, GrantedAccess::Write)
            }
            Effect::Exec { .. }
            | Effect::Fetch { .. }
            | Effect::Search { .. }
            | Effect::Delegate { .. }
            | Effect::Skill { .. }
            | Effect::Remote { .. }
            | Effect::Ask
            | Effect::State { .. }
            | Effect::Opaque => return None,
        };
        let fact = facts.get(path).filter(|fact| fact.problem.is_none())?;
        let access = most.limit(access);
        Some(PathGrant::new(path.clone(), fact.real.clone(), scope, access))
    });
    let policy = Arc::clone(policy);
    let hides_any = policy.hides_any_file();
    let workspace = Arc::clone(&context.call_context.workspace);
    // Built at the first file: most calls open none.
    let filter = Arc::new(LazyLock::new(move || policy.read_filter(&workspace)));
    let secrets = Arc::clone(&filter);
    let hidden = if hides_any {
        HiddenFileFilter::new(move |path| filter.is_hidden(path))
    } else {
        HiddenFileFilter::nothing()
    };
    GrantedFiles::new(reach.collect(), context.call_context.workspace.roots.clone())
        .with_hidden(hidden.with_secret_files(SensitivePathFilter(secrets)))
}

impl Gate {
    /// The rules for files as they are now, for a process that outlives the call that started it: a language server.
    /// It may read what no rule and no secret name hides.
    pub fn file_guard(&self, workspace: &Workspace) -> FileGuard {
        guard_files(&self.policy(), workspace, &CommandRights::none())
    }
}

/// The rules for files, for a command while it runs.
fn guard_files(policy: &Policy, workspace: &Workspace, rights: &CommandRights) -> FileGuard {
    FileGuard::new(Arc::new(PolicyPathGuard::new(policy, workspace, rights)))
}

/// The rules for files, as the sandbox asks for them.
struct PolicyPathGuard {
    guard: CommandGuard,
    names: Option<ReadFilter>,
}

impl PolicyPathGuard {
    fn new(policy: &Policy, workspace: &Workspace, rights: &CommandRights) -> Self {
        let guard = policy.command_guard(workspace, rights);
        // Without rules on reading, the name alone decides whether most files may hold secrets.
        let names = (!policy.hides_any_file()).then(|| policy.read_filter(workspace));
        Self { guard, names }
    }
}

impl PathGuard for PolicyPathGuard {
    fn hides(&self, real: &AbsPath) -> bool {
        self.guard.hides(real)
    }

    fn protects(&self, real: &AbsPath) -> bool {
        self.guard.protects(real)
    }

    fn hides_only_by_name(&self, directory: &AbsPath) -> bool {
        self.names.as_ref().is_some_and(|filter| filter.can_check_by_name(directory))
    }

    fn may_hide_name(&self, name: &str) -> bool {
        self.names.as_ref().is_none_or(|filter| filter.is_sensitive_name(name))
    }
}

/// The sensitive names of the policy, for searches.
struct SensitivePathFilter<F>(Arc<LazyLock<ReadFilter, F>>);

impl<F: FnOnce() -> ReadFilter + Send> SecretFileMatcher for SensitivePathFilter<F> {
    fn is_secret(&self, path: &AbsPath) -> bool {
        self.0.is_sensitive(path)
    }

    fn can_decide_by_name(&self, directory: &AbsPath) -> bool {
        self.0.can_check_by_name(directory)
    }

    fn is_secret_name(&self, name: &str) -> bool {
        self.0.is_sensitive_name(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_policy::{Layer, LayerRules, RawPolicy};

    fn guard_with(deny: &[&str]) -> (PolicyPathGuard, Arc<Policy>, Workspace) {
        let root = AbsPath::new("/ws").unwrap();
        let mut rules = LayerRules::new(Layer::User, root.clone());
        rules.deny = deny.iter().map(|rule| (*rule).into()).collect();
        let (policy, _) = RawPolicy::default().with_layers(vec![rules]).compile();
        let workspace = Workspace::new(root);
        let guard = PolicyPathGuard::new(&policy, &workspace, &CommandRights::none());
        (guard, Arc::new(policy), workspace)
    }

    #[test]
    fn a_running_command_gets_what_no_rule_and_no_name_hides() {
        let at = |path: &str| AbsPath::new(path).unwrap();
        let (guard, _, _) = guard_with(&["Read(notes.txt)"]);
        assert!(guard.hides(&at("/ws/notes.txt")) && guard.hides(&at("/ws/.env")));
        assert!(!guard.hides(&at("/ws/a.txt")));
        assert!(guard.protects(&at("/ws/.git/config")) && !guard.protects(&at("/ws/a.txt")));
        // A rule may be about any file, so that no name is free without a look at the rules.
        assert!(!guard.hides_only_by_name(&at("/ws")) && guard.may_hide_name("a.txt"));
        let (guard, _, _) = guard_with(&[]);
        assert!(!guard.hides(&at("/ws/notes.txt")) && guard.hides(&at("/ws/.env")));
        assert!(guard.hides_only_by_name(&at("/ws")));
        assert!(!guard.may_hide_name("a.txt") && guard.may_hide_name(".env"));
    }

    #[test]
    fn searches_leave_out_files_with_the_names_of_secrets() {
        let (_, policy, workspace) = guard_with(&[]);
        let secrets = SensitivePathFilter(Arc::new(LazyLock::new(move || policy.read_filter(&workspace))));
        let at = |path: &str| AbsPath::new(path).unwrap();
        assert!(secrets.is_secret(&at("/ws/.env")) && !secrets.is_secret(&at("/ws/a.txt")));
        assert!(secrets.is_secret_name(".env") && !secrets.is_secret_name("a.txt"));
        assert!(secrets.can_decide_by_name(&at("/ws")) && !secrets.can_decide_by_name(&at("/ws/.ssh")));
    }
}
