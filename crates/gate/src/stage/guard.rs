//! guard: the tool's own preconditions, then hands that reach what was granted and nothing else.

use super::settle::Granted;
use crate::host_rules::HostRules;
use crate::permit::Cleared;
use crate::pipeline::Walk;
use crate::progress::Progress;
use crate::tool::Prepared;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use toolgate_os::sandbox::{FileGuard, PathGuard};
use toolgate_os::{Access, Files, Hidden, Reach, SecretFileMatcher};
use toolgate_policy::{CommandGuard, ReadFilter};
use toolgate_proto::{AbsPath, Effect, Intent, PathFacts, Refusal, Scope, Stage, Terms, WriteKind};

/// A call with nothing left before it.
pub(crate) struct Ready {
    pub(crate) prepared: Box<dyn Prepared>,
    pub(crate) cleared: Cleared,
    /// How long the run may take where the caller set no deadline.
    pub(crate) timeout: Option<Duration>,
    /// The same handle that the tool has, for ending it.
    pub(crate) progress: Progress,
    /// The run itself asks a person something.
    pub(crate) asks: bool,
}

pub(crate) async fn guard(walk: &Walk<'_>, granted: Granted) -> Result<Ready, Refusal> {
    let Granted { permit, valid, intent, facts } = granted;
    walk.within(valid.prepared.guard(&walk.scene)).await.map_err(|refusal| refusal.at(Stage::Guard))?;
    let progress = Progress::new(walk.call.id.clone(), walk.gate.audience.clone());
    let recorder = walk
        .gate
        .journal
        .as_ref()
        .map(|journal| journal.recorder(walk.call.id.clone(), walk.scene.session.id().clone()));
    let files = hands(walk, &intent, &facts)
        .with_recorder(recorder)
        .with_checks(Arc::clone(&walk.gate.content_checks));
    let runs = intent.effects.iter().any(|effect| matches!(effect, Effect::Exec { .. }));
    let file_guard = if runs { file_guard(walk, permit.terms()) } else { FileGuard::default() };
    let cleared = Cleared::new(
        permit,
        walk.call.id.clone(),
        walk.scene.clone(),
        (files, HostRules::new(Arc::clone(&walk.current.policy)), file_guard),
        (progress.clone(), walk.cancel.clone()),
    );
    let asks = intent.effects.contains(&Effect::Ask);
    Ok(Ready { prepared: valid.prepared, cleared, timeout: valid.tool.spec.timeout, progress, asks })
}

/// The paths that the intent names, as they were judged. Paths that policy inferred from a command line are the
/// sandbox's business, not a file tool's. Files that a rule denies to be read are not found below a granted tree.
fn hands(walk: &Walk<'_>, intent: &Intent, facts: &PathFacts) -> Files {
    let reach = intent.effects.iter().filter_map(|effect| {
        let (path, scope, access) = match effect {
            Effect::Read { path, scope } => (path, *scope, Access::Read),
            Effect::Write { path, kind: WriteKind::Tree } => (path, Scope::Tree, Access::Write),
            Effect::Write { path, kind: WriteKind::Put | WriteKind::Edit | WriteKind::Delete } => {
                (path, Scope::Entry, Access::Write)
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
        Some(Reach { asked: path.clone(), real: fact.real.clone(), scope, access })
    });
    let policy = Arc::clone(&walk.current.policy);
    let hides_any = policy.hides_any();
    let workspace = Arc::clone(&walk.scene.workspace);
    // Made when the first file is met: most calls meet none.
    let filter = Arc::new(LazyLock::new(move || policy.read_filter(&workspace)));
    let secrets = Arc::clone(&filter);
    let hidden = if hides_any { Hidden::new(move |path| filter.hidden(path)) } else { Hidden::nothing() };
    Files::new(reach.collect(), walk.scene.workspace.roots.clone())
        .with_hidden(hidden.withholding(Sensitive(secrets)))
}

/// The rules for files, for a command while it runs.
fn file_guard(walk: &Walk<'_>, terms: &Terms) -> FileGuard {
    let policy = &walk.current.policy;
    let workspace = &walk.scene.workspace;
    let guard = policy.command_guard(workspace, &terms.rights);
    // Without rules on reading, most files are told from secrets by their names alone.
    let names = (!policy.hides_any()).then(|| policy.read_filter(workspace));
    FileGuard::new(Arc::new(PolicyPathGuard { guard, names }))
}

/// What policy says of files, in the terms of the sandbox.
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

    fn names_tell(&self, directory: &AbsPath) -> bool {
        self.names.as_ref().is_some_and(|filter| filter.names_tell(directory))
    }

    fn may_hide_name(&self, name: &str) -> bool {
        self.names.as_ref().is_none_or(|filter| filter.is_sensitive_name(name))
    }
}

/// What policy calls sensitive, for searches.
struct Sensitive<F>(Arc<LazyLock<ReadFilter, F>>);

impl<F: FnOnce() -> ReadFilter + Send> SecretFileMatcher for Sensitive<F> {
    fn is_secret(&self, path: &AbsPath) -> bool {
        self.0.sensitive(path)
    }

    fn names_tell(&self, directory: &AbsPath) -> bool {
        self.0.names_tell(directory)
    }

    fn is_secret_name(&self, name: &str) -> bool {
        self.0.is_sensitive_name(name)
    }
}
