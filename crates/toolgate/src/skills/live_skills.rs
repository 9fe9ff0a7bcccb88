//! The catalog of a session: loaded again when files change, with how often each skill was used.

use super::catalog::SkillCatalog;
use super::places::{CapabilityPlace, CapabilityPlaces, PluginIdentity};
use super::skill_trust::{SkillTrust, TrustSubject};
use crate::hooks::{BuiltHooks, CapabilityHooks, HookOwner, HookTrustCheck};
use crate::settings::values::SkillOverride;
use crate::settings_reloader::SettingsReloader;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use toolgate_proto::AbsPath;
use toolgate_skills::{ListedSkill, SkillListing};

/// The most characters of a listing by default: one percent of a context of 200 000 tokens.
pub const DEFAULT_LISTING_CHARS: usize = 8_000;

/// How a session finds and offers skills.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SkillOptions {
    /// Where skills are looked for.
    pub places: CapabilityPlaces,
    /// The most characters that models are shown of all skills together.
    pub listing_chars: usize,
    /// Which skills of the project may pre-approve tools.
    pub trust: SkillTrust,
}

impl SkillOptions {
    /// Skills of these places, with the usual budget. No skill of a project may pre-approve anything.
    pub fn new(places: CapabilityPlaces) -> Self {
        Self { places, listing_chars: DEFAULT_LISTING_CHARS, trust: SkillTrust::default() }
    }

    /// Sets the most characters of a listing.
    pub fn with_listing_chars(mut self, listing_chars: usize) -> Self {
        self.listing_chars = listing_chars;
        self
    }

    /// Sets which skills of the project may pre-approve tools.
    pub fn with_trust(mut self, trust: SkillTrust) -> Self {
        self.trust = trust;
        self
    }
}

/// The skills of a session.
#[derive(Debug)]
pub struct LiveSkills {
    /// Places, trust and limits, fixed for the session.
    options: SkillOptions,
    /// The part that changes during the session.
    state: Mutex<LiveState>,
    /// Builds hooks of skills and agents; set when the toolgate is built.
    reloader: OnceLock<Weak<SettingsReloader>>,
}

/// The mutable state of [`LiveSkills`], under one lock.
#[derive(Debug, Default)]
struct LiveState {
    /// The catalog of the last reload. Callers clone the `Arc` and keep a stable view without holding the lock.
    catalog: Arc<SkillCatalog>,
    /// Directories below the workspace that calls touched, and that may have skills of their own.
    nested: Vec<AbsPath>,
    /// Invocations per skill in this session, for the listing.
    uses: BTreeMap<String, u64>,
    /// Settings that disable a skill or restrict its users, by skill name.
    overrides: BTreeMap<String, SkillOverride>,
    /// The places of plugins, after all others.
    plugin_places: Vec<CapabilityPlace>,
    /// The only skills that models are offered; absent means all.
    offered: Option<Vec<String>>,
}

impl LiveState {
    /// Whether models are offered a skill of this name.
    fn offers(&self, name: &str) -> bool {
        let suffix = |wanted: &String| name.strip_suffix(wanted.as_str()).is_some_and(|it| it.ends_with(':'));
        self.offered.as_ref().is_none_or(|names| names.iter().any(|wanted| wanted == name || suffix(wanted)))
    }
}

impl LiveSkills {
    /// Loads the skills.
    pub fn new(options: SkillOptions) -> Self {
        let catalog = Arc::new(SkillCatalog::load(&options.places, None));
        let state = Mutex::new(LiveState { catalog, ..LiveState::default() });
        Self { options, state, reloader: OnceLock::new() }
    }

    /// The skills as the files say now. What did not change is not read again.
    pub fn current(&self) -> Arc<SkillCatalog> {
        self.reload(&mut self.lock())
    }

    /// Replaces the places of plugins, and loads the skills again if they changed.
    pub(crate) fn set_plugin_places(&self, places: Vec<CapabilityPlace>) {
        let mut state = self.lock();
        if state.plugin_places != places {
            state.plugin_places = places;
            self.reload(&mut state);
        }
    }

    /// Loads what changed while the lock is held.
    fn reload(&self, state: &mut LiveState) -> Arc<SkillCatalog> {
        let mut places = self.options.places.clone();
        for dir in &state.nested {
            places.add_nested(dir);
        }
        places.places.extend(state.plugin_places.iter().cloned());
        state.catalog = SkillCatalog::reload(&state.catalog, &places);
        Arc::clone(&state.catalog)
    }

    /// The skills as they were loaded last.
    pub fn loaded(&self) -> Arc<SkillCatalog> {
        Arc::clone(&self.lock().catalog)
    }

    /// Looks for skills in the directories between the workspace and a path that a call touched. True if there are
    /// some that were not known.
    pub fn add_touched_path(&self, root: &AbsPath, path: &AbsPath) -> bool {
        let mut found = false;
        let mut dir = path.parent();
        let mut state = self.lock();
        while let Some(below) = dir.filter(|dir| dir.is_under(root) && dir != root) {
            if !state.nested.contains(&below) && CapabilityPlaces::has_project_folder(&below) {
                state.nested.push(below.clone());
                found = true;
            }
            dir = below.parent();
        }
        found
    }

    /// Replaces what settings say about single skills.
    pub(crate) fn set_overrides(&self, overrides: BTreeMap<String, SkillOverride>) {
        self.lock().overrides = overrides;
    }

    /// How settings want a skill to be offered; skills of plugins cannot be changed this way.
    pub fn find_override(&self, name: &str) -> SkillOverride {
        self.lock().overrides.get(name).copied().unwrap_or(SkillOverride::On)
    }

    /// Offers models only these skills, by whole name or by the part after `:`. The user can call every one.
    pub fn offer_only(&self, names: Vec<String>) {
        self.lock().offered = Some(names);
    }

    /// Whether models are offered a skill of this name, as far as [`LiveSkills::offer_only`] says.
    pub fn is_offered(&self, name: &str) -> bool {
        self.lock().offers(name)
    }

    /// Counts a use of a skill.
    pub(crate) fn count_use(&self, name: &str) {
        *self.lock().uses.entry(name.to_owned()).or_default() += 1;
    }

    /// Which skills of the project may pre-approve tools.
    pub(crate) fn trust(&self) -> &SkillTrust {
        &self.options.trust
    }

    /// Connects the skills with the settings, by which their hooks are built.
    pub(crate) fn connect(&self, reloader: &Arc<SettingsReloader>) {
        let _ = self.reloader.set(Arc::downgrade(reloader));
    }

    /// Builds the hooks of a skill or an agent; none if it has none. The error says why they cannot run.
    pub(crate) fn build_hooks(
        self: &Arc<Self>,
        owner: &HookOwner,
        hooks: Option<&serde_json::Value>,
        subject: TrustSubject,
    ) -> Result<BuiltHooks, String> {
        let Some(value) = hooks else { return Ok(BuiltHooks::default()) };
        let read = CapabilityHooks::read(value, owner.plugin.is_some())?;
        let reloader = self.reloader.get().and_then(Weak::upgrade).ok_or("there are no settings")?;
        let (skills, plugin) = (Arc::downgrade(self), owner.plugin.clone());
        let check: HookTrustCheck = Arc::new(move || {
            let skills = skills.upgrade().ok_or("the session has ended")?;
            let is_held_back = |plugin: &Arc<PluginIdentity>| !skills.has_plugin(plugin);
            if plugin.as_ref().is_some_and(is_held_back) {
                return Err(
                    "its plugin is not as you approved it any more; see `toolgate plugin list`".to_owned()
                );
            }
            skills.trust().check_hooks(&subject)
        });
        let mut built = reloader.build_capability_hooks(&read, owner, &check)?;
        built.skipped = read.skipped;
        Ok(built)
    }

    /// Whether a plugin is in use exactly like this.
    fn has_plugin(&self, plugin: &PluginIdentity) -> bool {
        self.lock().plugin_places.iter().any(|place| place.plugin.as_ref() == Some(plugin))
    }

    /// What models are shown: every skill that they may use, within the budget.
    pub fn listing(&self, catalog: &SkillCatalog) -> SkillListing {
        let state = self.lock();
        let offered = catalog.skills().filter(|skill| !skill.definition.disables_model_invocation);
        let offered = offered.filter(|skill| state.offers(&skill.name));
        let listed = offered.filter_map(|skill| {
            let choice = match skill.plugin {
                Some(_) => SkillOverride::On,
                None => state.overrides.get(&skill.name).copied().unwrap_or(SkillOverride::On),
            };
            let description = match choice {
                SkillOverride::On => skill.definition.listed_description(),
                SkillOverride::NameOnly => String::new(),
                SkillOverride::UserInvocableOnly | SkillOverride::Off => return None,
            };
            let uses = state.uses.get(&skill.name).copied().unwrap_or_default();
            Some(ListedSkill::new(skill.name.clone(), description, uses))
        });
        let listed: Vec<ListedSkill> = listed.collect();
        drop(state);
        SkillListing::build(&listed, self.options.listing_chars)
    }

    /// Locks the state. Ignores poisoning, because each single update leaves a valid state.
    fn lock(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
