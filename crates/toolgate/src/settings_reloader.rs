//! Reloading of settings: the files are checked before each call and read again when one has changed.
//!
//! A change applies from the next call on; calls in flight keep the settings that they started with.
//! Grants of the session and its roots are kept.
//! When a file becomes unreadable the gate refuses every call, because that file may contain a deny rule.

use crate::builder::BuilderRules;
use crate::enforcement::enforcement;
use crate::hooks::{HookContext, PlannedHook, build_hooks};
use crate::settings::trust::TrustStatus;
use crate::settings::{LoadedSettings, SettingsNote, SettingsOptions};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toolgate_gate::{Approver, Gate, Hook, Session, Visibility};
use toolgate_policy::{Layer, LayerRules, RawPolicy, RuleProblem};
use toolgate_proto::{AbsPath, Mode};
use toolgate_tools::ShellConfig;

/// The part of the configuration that the builder fixed. Each reload combines it with the settings files.
pub(crate) struct BuilderOptions {
    /// Where the settings files are; none if the program uses no settings.
    pub(crate) options: Option<SettingsOptions>,
    /// The workspace root, which anchors the builder's rules.
    pub(crate) root: AbsPath,
    /// The session whose shell configuration is updated.
    pub(crate) session: Session,
    /// The shell configuration before settings are applied.
    pub(crate) shell_config: ShellConfig,
    /// Rules of the builder and the command line.
    pub(crate) rules: BuilderRules,
    /// The mode of the command line; managed settings can override it.
    pub(crate) mode: Option<Mode>,
    /// The only visible tools, if they are limited.
    pub(crate) only: Option<BTreeSet<String>>,
    /// Hooks of the program; they run after those of settings.
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    /// Approvers of the program; settings can switch them off.
    pub(crate) approvers: Vec<Arc<dyn Approver>>,
    /// What configured hooks need to run.
    pub(crate) context: HookContext,
}

/// The settings that apply now.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActiveSettings {
    /// The files, as they were read.
    pub(crate) settings: Arc<LoadedSettings>,
    /// The policy made from them, before compilation.
    pub(crate) policy: Arc<RawPolicy>,
    /// Hooks that screened calls until trust in the project lapsed in this session. The calls are refused meanwhile.
    lapsed_hooks: Arc<[PlannedHook]>,
}

/// Applies the settings files to a gate, at the start and after each change.
pub(crate) struct SettingsReloader {
    /// What does not change.
    builder_options: BuilderOptions,
    /// What the last reload made.
    active: Mutex<ActiveSettings>,
}

impl SettingsReloader {
    /// A reloader that has not applied any settings yet.
    pub(crate) fn new(builder_options: BuilderOptions) -> Self {
        Self { builder_options, active: Mutex::default() }
    }

    /// The settings that apply now.
    pub(crate) fn active(&self) -> ActiveSettings {
        self.lock().clone()
    }

    /// Applies settings to the gate. Returns the problems of rules and the notes about settings and hooks.
    pub(crate) fn apply(
        &self,
        gate: &Gate,
        settings: LoadedSettings,
    ) -> (Vec<RuleProblem>, Vec<SettingsNote>) {
        self.apply_locked(&mut self.lock(), gate, settings)
    }

    /// Reads the files again if one has changed; closes the gate if that fails.
    pub(crate) fn refresh(&self, gate: &Gate) {
        let Some(options) = &self.builder_options.options else { return };
        let mut active = self.lock();
        if !active.settings.is_stale() {
            return;
        }
        match LoadedSettings::load(options) {
            Ok(settings) => {
                self.apply_locked(&mut active, gate, settings);
                gate.reopen();
            }
            // The old settings stay stale, so the next call reads the files again.
            Err(error) => gate.shut(&format!("{}:{}: {}", error.file, error.line, error.message)),
        }
    }

    /// Applies settings while the lock is held: two reloads must not interleave their changes to the gate.
    fn apply_locked(
        &self,
        active: &mut ActiveSettings,
        gate: &Gate,
        settings: LoadedSettings,
    ) -> (Vec<RuleProblem>, Vec<SettingsNote>) {
        let options = &self.builder_options;
        let mut policy = settings.policy(options.mode);
        let mut rules = LayerRules::new(Layer::Cli, options.root.clone());
        rules.ask.clone_from(&options.rules.ask);
        rules.deny.clone_from(&options.rules.deny);
        rules.allow.clone_from(&options.rules.allow);
        policy.layers.push(rules);
        let lapsed: Arc<[PlannedHook]> = match (settings.trust_status, active.settings.trust_status) {
            (TrustStatus::Trusted, _) => Arc::default(),
            (_, TrustStatus::Trusted) => PlannedHook::collect_lapsed(&active.settings).into(),
            (_, TrustStatus::Changed | TrustStatus::Unknown) => Arc::clone(&active.lapsed_hooks),
        };
        let (configured, hook_notes) = build_hooks(&settings, &lapsed, &options.context);
        // Hooks of settings run first, managed ones before all others, then those of the program.
        gate.set_hooks(configured.into_iter().chain(options.hooks.iter().cloned()).collect());
        let deny_questions = settings.denies_instead_of_asking();
        gate.set_approvers(if deny_questions { Vec::new() } else { options.approvers.clone() });
        gate.set_visibility(
            Visibility::default().with_only(options.only.clone()).with_hidden(settings.disabled_tools()),
        );
        let mut shell_config = options.shell_config.clone();
        settings.apply_to_shell_config(&mut shell_config);
        self.protect_own_files(&settings, &mut shell_config);
        policy.enforcement = enforcement(&shell_config);
        let problems = gate.set_policy(policy.clone());
        toolgate_tools::set_shell_config(&options.session, shell_config);
        let notes = settings.notes.iter().cloned().chain(hook_notes).collect();
        *active =
            ActiveSettings { settings: Arc::new(settings), policy: Arc::new(policy), lapsed_hooks: lapsed };
        (problems, notes)
    }

    /// Makes toolgate's own files and the scripts of hooks read-only for commands, and its credentials unreadable.
    fn protect_own_files(&self, settings: &LoadedSettings, shell_config: &mut ShellConfig) {
        let roots = self.builder_options.session.workspace().roots.clone();
        let is_writable = |path: &AbsPath| {
            roots.iter().chain(&shell_config.sandbox.writable).any(|root| path.is_under(root))
        };
        let protected: Vec<AbsPath> = settings.protected_paths().into_iter().filter(is_writable).collect();
        shell_config.sandbox.protected.extend(protected);
        let state = self.builder_options.options.as_ref().and_then(|options| options.state_dir.as_ref());
        let secrets = state.map(LoadedSettings::secret_paths).unwrap_or_default();
        let existing = secrets
            .into_iter()
            .filter(|path| toolgate_files::read_file_stamp(path) != toolgate_files::FileStamp::Absent);
        shell_config.sandbox.unreadable.extend(existing);
    }

    /// The active settings; a panic of another thread cannot leave them half replaced.
    fn lock(&self) -> MutexGuard<'_, ActiveSettings> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SettingsReloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SettingsReloader").field("active", &self.active).finish_non_exhaustive()
    }
}
