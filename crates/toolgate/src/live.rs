//! Settings while calls are made: looked at before each call, read again when a file has changed.
//!
//! A change counts from the next call on; calls under way finish with what they found.
//! What was granted in the session stays, and the roots stay, since a session's roots are fixed.
//! When the files can no longer be read the gate is shut, because the file that broke may hold a deny.

use crate::builder::Rules;
use crate::enforcement::enforcement;
use crate::hooks::{HookContext, PlannedHook, build_hooks};
use crate::settings::trust::Standing;
use crate::settings::{Settings, SettingsNote, SettingsOptions};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toolgate_gate::{Approver, Gate, Hook, Session, Visibility};
use toolgate_policy::{Layer, LayerRules, Problem, RawPolicy};
use toolgate_proto::{AbsPath, Mode};
use toolgate_tools::Surroundings;

/// What the person or program that built the gate chose; settings are put around it.
pub(crate) struct Chosen {
    pub(crate) options: Option<SettingsOptions>,
    pub(crate) root: AbsPath,
    pub(crate) session: Session,
    pub(crate) surroundings: Surroundings,
    pub(crate) rules: Rules,
    pub(crate) mode: Option<Mode>,
    pub(crate) only: Option<BTreeSet<String>>,
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    pub(crate) approvers: Vec<Arc<dyn Approver>>,
    pub(crate) context: HookContext,
}

/// The settings in force.
#[derive(Debug, Clone, Default)]
pub(crate) struct Now {
    pub(crate) settings: Arc<Settings>,
    pub(crate) policy: Arc<RawPolicy>,
    /// Hooks of the project that screened calls until its trust lapsed in this session.
    lapsed: Arc<[PlannedHook]>,
}

/// Keeps a gate in step with its settings files.
pub(crate) struct Live {
    chosen: Chosen,
    now: Mutex<Now>,
}

impl Live {
    pub(crate) fn new(chosen: Chosen) -> Self {
        Self { chosen, now: Mutex::default() }
    }

    pub(crate) fn now(&self) -> Now {
        self.lock().clone()
    }

    /// Puts settings into force.
    pub(crate) fn apply(&self, gate: &Gate, settings: Settings) -> (Vec<Problem>, Vec<SettingsNote>) {
        self.apply_locked(&mut self.lock(), gate, settings)
    }

    /// Reads the files again if one has changed.
    pub(crate) fn refresh(&self, gate: &Gate) {
        let Some(options) = &self.chosen.options else { return };
        let mut now = self.lock();
        if !now.settings.is_stale() {
            return;
        }
        match Settings::load(options) {
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
        now: &mut Now,
        gate: &Gate,
        settings: Settings,
    ) -> (Vec<Problem>, Vec<SettingsNote>) {
        let chosen = &self.chosen;
        let mut policy = settings.policy(chosen.mode);
        let mut rules = LayerRules::new(Layer::Cli, chosen.root.clone());
        rules.ask.clone_from(&chosen.rules.ask);
        rules.deny.clone_from(&chosen.rules.deny);
        rules.allow.clone_from(&chosen.rules.allow);
        policy.layers.push(rules);
        let lapsed: Arc<[PlannedHook]> = match (settings.standing, now.settings.standing) {
            (Standing::Trusted, _) => Arc::default(),
            (_, Standing::Trusted) => PlannedHook::lapsed(&now.settings).into(),
            (_, Standing::Changed | Standing::Unknown) => Arc::clone(&now.lapsed),
        };
        let (configured, hook_notes) = build_hooks(&settings, &lapsed, &chosen.context);
        // Managed and other settings' hooks come first, then the program's own.
        gate.set_hooks(configured.into_iter().chain(chosen.hooks.iter().cloned()).collect());
        let silent = settings.denies_instead_of_asking();
        gate.set_approvers(if silent { Vec::new() } else { chosen.approvers.clone() });
        gate.set_visibility(Visibility {
            only: chosen.only.clone(),
            hidden: settings.disabled_tools().into_iter().collect(),
        });
        let mut surroundings = chosen.surroundings.clone();
        settings.surround(&mut surroundings);
        self.protect_own_files(&settings, &mut surroundings);
        policy.enforcement = enforcement(&surroundings);
        let problems = gate.set_policy(policy.clone());
        toolgate_tools::surround(&chosen.session, surroundings);
        let notes = settings.notes.iter().cloned().chain(hook_notes).collect();
        *now = Now { settings: Arc::new(settings), policy: Arc::new(policy), lapsed };
        (problems, notes)
    }

    /// Keeps toolgate's own files and what hooks run as they are, where commands could write to them, and secrets
    /// unread.
    fn protect_own_files(&self, settings: &Settings, surroundings: &mut Surroundings) {
        let roots = self.chosen.session.workspace().roots.clone();
        let reached = |path: &AbsPath| {
            roots.iter().chain(&surroundings.sandbox.writable).any(|root| path.is_under(root))
        };
        let kept: Vec<AbsPath> = settings.protected_paths().into_iter().filter(reached).collect();
        surroundings.sandbox.protected.extend(kept);
        let state = self.chosen.options.as_ref().and_then(|options| options.state_dir.as_ref());
        let secrets = state.map(Settings::secret_paths).unwrap_or_default();
        let there = secrets.into_iter().filter(|path| toolgate_os::stamp(path) != toolgate_os::Stamp::Absent);
        surroundings.sandbox.unreadable.extend(there);
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("now", &self.now).finish_non_exhaustive()
    }
}
