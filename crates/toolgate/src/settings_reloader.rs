//! Settings while calls are made: looked at before each call, read again when a file has changed.
//!
//! A change counts from the next call on; calls under way finish with what they found.
//! What was granted in the session stays, and the roots stay, since a session's roots are fixed.
//! When the files can no longer be read the gate is shut, because the file that broke may hold a deny.

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

/// What the person or program that built the gate chose; settings are put around it.
pub(crate) struct BuilderOptions {
    pub(crate) options: Option<SettingsOptions>,
    pub(crate) root: AbsPath,
    pub(crate) session: Session,
    pub(crate) shell_config: ShellConfig,
    pub(crate) rules: BuilderRules,
    pub(crate) mode: Option<Mode>,
    pub(crate) only: Option<BTreeSet<String>>,
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    pub(crate) approvers: Vec<Arc<dyn Approver>>,
    pub(crate) context: HookContext,
}

/// The settings in force.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActiveSettings {
    pub(crate) settings: Arc<LoadedSettings>,
    pub(crate) policy: Arc<RawPolicy>,
    /// Hooks of the project that screened calls until its trust lapsed in this session.
    lapsed_hooks: Arc<[PlannedHook]>,
}

/// Keeps a gate in step with its settings files.
pub(crate) struct SettingsReloader {
    builder_options: BuilderOptions,
    active: Mutex<ActiveSettings>,
}

impl SettingsReloader {
    pub(crate) fn new(builder_options: BuilderOptions) -> Self {
        Self { builder_options, active: Mutex::default() }
    }

    pub(crate) fn active(&self) -> ActiveSettings {
        self.lock().clone()
    }

    /// Puts settings into force.
    pub(crate) fn apply(
        &self,
        gate: &Gate,
        settings: LoadedSettings,
    ) -> (Vec<RuleProblem>, Vec<SettingsNote>) {
        self.apply_locked(&mut self.lock(), gate, settings)
    }

    /// Reads the files again if one has changed.
    pub(crate) fn refresh(&self, gate: &Gate) {
        let Some(options) = &self.builder_options.options else { return };
        let mut now = self.lock();
        if !now.settings.is_stale() {
            return;
        }
        match LoadedSettings::load(options) {
            Ok(settings) => {
                self.apply_locked(&mut now, gate, settings);
                gate.reopen();
            }
            // Still stale, so the next call tries again.
            Err(error) => gate.shut(&format!("{}:{}: {}", error.file, error.line, error.message)),
        }
    }

    fn apply_locked(
        &self,
        now: &mut ActiveSettings,
        gate: &Gate,
        settings: LoadedSettings,
    ) -> (Vec<RuleProblem>, Vec<SettingsNote>) {
        let chosen = &self.builder_options;
        let mut policy = settings.policy(chosen.mode);
        let mut rules = LayerRules::new(Layer::Cli, chosen.root.clone());
        rules.ask.clone_from(&chosen.rules.ask);
        rules.deny.clone_from(&chosen.rules.deny);
        rules.allow.clone_from(&chosen.rules.allow);
        policy.layers.push(rules);
        let lapsed: Arc<[PlannedHook]> = match (settings.trust_status, now.settings.trust_status) {
            (TrustStatus::Trusted, _) => Arc::default(),
            (_, TrustStatus::Trusted) => PlannedHook::collect_lapsed(&now.settings).into(),
            (_, TrustStatus::Changed | TrustStatus::Unknown) => Arc::clone(&now.lapsed_hooks),
        };
        let (configured, hook_notes) = build_hooks(&settings, &lapsed, &chosen.context);
        // Managed and other settings' hooks come first, then the program's own.
        gate.set_hooks(configured.into_iter().chain(chosen.hooks.iter().cloned()).collect());
        let silent = settings.denies_instead_of_asking();
        gate.set_approvers(if silent { Vec::new() } else { chosen.approvers.clone() });
        let visibility = Visibility::default().with_only(chosen.only.clone());
        gate.set_visibility(visibility.with_hidden(settings.disabled_tools()));
        let mut surroundings = chosen.shell_config.clone();
        settings.apply_to_shell_config(&mut surroundings);
        self.protect_own_files(&settings, &mut surroundings);
        policy.enforcement = enforcement(&surroundings);
        let problems = gate.set_policy(policy.clone());
        toolgate_tools::set_shell_config(&chosen.session, surroundings);
        let notes = settings.notes.iter().cloned().chain(hook_notes).collect();
        *now =
            ActiveSettings { settings: Arc::new(settings), policy: Arc::new(policy), lapsed_hooks: lapsed };
        (problems, notes)
    }

    /// Keeps toolgate's own files and what hooks run as they are, where commands could write to them, and secrets
    /// unread.
    fn protect_own_files(&self, settings: &LoadedSettings, surroundings: &mut ShellConfig) {
        let roots = self.builder_options.session.workspace().roots.clone();
        let reached = |path: &AbsPath| {
            roots.iter().chain(&surroundings.sandbox.writable).any(|root| path.is_under(root))
        };
        let kept: Vec<AbsPath> = settings.protected_paths().into_iter().filter(reached).collect();
        surroundings.sandbox.protected.extend(kept);
        let state = self.builder_options.options.as_ref().and_then(|options| options.state_dir.as_ref());
        let secrets = state.map(LoadedSettings::secret_paths).unwrap_or_default();
        let there = secrets
            .into_iter()
            .filter(|path| toolgate_files::read_file_stamp(path) != toolgate_files::FileStamp::Absent);
        surroundings.sandbox.unreadable.extend(there);
    }

    fn lock(&self) -> MutexGuard<'_, ActiveSettings> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SettingsReloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SettingsReloader").field("active", &self.active).finish_non_exhaustive()
    }
}
