//! guard: the tool's own preconditions, then file handles that reach what was granted and nothing else.

use super::settle::GrantedCall;
use crate::call_context::PipelineContext;
use crate::host_rules::HostRules;
use crate::permit::Cleared;
use crate::progress::CallProgress;
use crate::tool::ErasedCall;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use toolgate_files::{GrantedAccess, GrantedFiles, HiddenFileFilter, PathGrant, SecretFileMatcher};
use toolgate_policy::{CommandGuard, Policy, ReadFilter};
use toolgate_process::sandbox::{FileGuard, PathGuard};
use toolgate_proto::{AbsPath, Effect, Intent, PathFacts, PathScope, Refusal, Stage, Terms, WriteKind};

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
    let files = granted_files(context, &policy, &intent, &facts)
        .with_recorder(recorder)
        .with_checks(Arc::clone(&context.gate.content_checks));
    let runs = intent.effects.iter().any(|effect| matches!(effect, Effect::Exec { .. }));
    let file_guard = if runs { file_guard(context, &policy, permit.terms()) } else { FileGuard::default() };
    let cleared = Cleared::new(
        permit,
        context.call.id.clone(),
        context.call_context.clone(),
        (files, HostRules::new(policy), file_guard),
        (progress.clone(), context.cancel.clone()),
    );
    let asks = intent.effects.contains(&Effect::Ask);
    Ok(PreparedCall { prepared: valid.prepared, cleared, timeout: valid.tool.spec.timeout, progress, asks })
}

/// The paths that the intent names, as they were judged. Paths that policy inferred from a command line are the
/// enforced by the sandbox, not by file handles. Files that a rule denies are not found below a granted tree.
fn granted_files(
    context: &PipelineContext<'_>,
    policy: &Arc<Policy>,
    intent: &Intent,
    facts: &PathFacts,
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
        Some(PathGrant { asked: path.clone(), real: fact.real.clone(), scope, access })
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

/// The rules for files, for a command while it runs.
fn file_guard(context: &PipelineContext<'_>, policy: &Policy, terms: &Terms) -> FileGuard {
    let workspace = &context.call_context.workspace;
    let guard = policy.command_guard(workspace, &terms.rights);
    // Without rules on reading, the name alone decides whether most files may hold secrets.
    let names = (!policy.hides_any_file()).then(|| policy.read_filter(workspace));
    FileGuard::new(Arc::new(PolicyPathGuard { guard, names }))
}

/// The rules for files, as the sandbox asks for them.
struct PolicyPathGuard {
    guard: CommandGuard,
    names: Option<ReadFilter>,
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
