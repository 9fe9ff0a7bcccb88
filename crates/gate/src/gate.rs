//! The gate: its parts, and how they change while calls are in flight.

use crate::approve::{Approver, GrantStore};
use crate::call_context::CallContext;
use crate::event_bus::EventBus;
use crate::hook::{Hook, HookEvent};
use crate::registry::{RegisterError, RegisteredTool, Registry};
use crate::session::Session;
use crate::sink::Sink;
use crate::source::Source;
use crate::tool::Tool;
use crate::tool_listing::{FoundTools, ToolListing};
use crate::turn_hooks::HookLayers;
use crate::turn_rules::TurnRules;
use crate::visibility::Visibility;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use toolgate_files::{ContentCheck, Journal, SpillStore};
use toolgate_policy::{Layer, LayerRules, Policy, RawPolicy, RawRule, RuleAction, RuleProblem};
use toolgate_proto::{AbsPath, Code, Event, Refusal, SourceId, ToolDefinition, ToolIdentity};

/// The parts of a gate. Start from the default, and set what differs by the `with_…` methods.
#[non_exhaustive]
pub struct GateParts {
    /// The rules and the mode.
    pub policy: RawPolicy,
    /// Which tools are visible.
    pub visibility: Visibility,
    /// Hooks, in the order in which they run.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// Approvers, in the order in which they are asked.
    pub approvers: Vec<Arc<dyn Approver>>,
    /// Writes rules that a user grants for good; without one they last for the session.
    pub grant_store: Option<Arc<dyn GrantStore>>,
    /// Where records go.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// Records changes of files, so that they can be undone; without one they cannot.
    pub journal: Option<Arc<Journal>>,
    /// Checks of new file contents, before they replace the old.
    pub content_checks: Vec<Arc<dyn ContentCheck>>,
    /// How long a question may wait for its answer.
    pub approval_timeout: Duration,
    /// Grace period: how long a cancelled tool may take to end by itself.
    pub grace: Duration,
    /// How many calls of one scheduler may run hooks or tools at once; at least one.
    pub max_concurrency: usize,
    /// Stores results that are too large for a model; without it they are truncated and the rest is lost.
    pub spill: Option<Arc<SpillStore>>,
    /// The most characters that all results of a batch may have together.
    pub batch_chars: usize,
}

impl Default for GateParts {
    fn default() -> Self {
        Self {
            policy: RawPolicy::default(),
            visibility: Visibility::default(),
            hooks: Vec::new(),
            approvers: Vec::new(),
            grant_store: None,
            sinks: Vec::new(),
            journal: None,
            content_checks: Vec::new(),
            approval_timeout: Duration::from_secs(300),
            grace: Duration::from_secs(2),
            max_concurrency: 10,
            spill: None,
            batch_chars: 400_000,
        }
    }
}

impl GateParts {
    /// Sets the rules and the mode.
    pub fn with_policy(mut self, policy: RawPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the choice of tools.
    pub fn with_visibility(mut self, visibility: Visibility) -> Self {
        self.visibility = visibility;
        self
    }

    /// Sets the hooks, in the order in which they run.
    pub fn with_hooks(mut self, hooks: Vec<Arc<dyn Hook>>) -> Self {
        self.hooks = hooks;
        self
    }

    /// Sets the approvers, in the order in which they are asked.
    pub fn with_approvers(mut self, approvers: Vec<Arc<dyn Approver>>) -> Self {
        self.approvers = approvers;
        self
    }

    /// Sets the store of rules that a user grants for good.
    pub fn with_grant_store(mut self, grant_store: Arc<dyn GrantStore>) -> Self {
        self.grant_store = Some(grant_store);
        self
    }

    /// Sets the sinks for records.
    pub fn with_sinks(mut self, sinks: Vec<Arc<dyn Sink>>) -> Self {
        self.sinks = sinks;
        self
    }

    /// Sets the journal of file changes.
    pub fn with_journal(mut self, journal: Arc<Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Sets the checks of new file contents.
    pub fn with_content_checks(mut self, content_checks: Vec<Arc<dyn ContentCheck>>) -> Self {
        self.content_checks = content_checks;
        self
    }

    /// Sets the time that a question may wait for its answer.
    pub fn with_approval_timeout(mut self, approval_timeout: Duration) -> Self {
        self.approval_timeout = approval_timeout;
        self
    }

    /// Sets the time that a cancelled tool may take to end.
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the number of calls of one batch that may run at once.
    pub fn with_max_concurrency(mut self, max_concurrency: usize) -> Self {
        self.max_concurrency = max_concurrency;
        self
    }

    /// Sets the store of results that are too large for a model.
    pub fn with_spill(mut self, spill: Arc<SpillStore>) -> Self {
        self.spill = Some(spill);
        self
    }

    /// Sets the limit in characters on all results of a batch together.
    pub fn with_batch_chars(mut self, batch_chars: usize) -> Self {
        self.batch_chars = batch_chars;
        self
    }
}

/// What may change while calls are in flight. A call works with the snapshot of its arrival.
#[derive(Clone)]
pub(crate) struct GateSnapshot {
    pub(crate) registry: Arc<Registry>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) visibility: Arc<Visibility>,
    pub(crate) hooks: Arc<[Arc<dyn Hook>]>,
    pub(crate) approvers: Arc<[Arc<dyn Approver>]>,
    /// Set while every call is refused, and why.
    shut: Option<Arc<Refusal>>,
}

impl GateSnapshot {
    /// The same for a part of a session, which may see fewer tools and have further hooks. Its mode is that of [`Session::effective_policy`].
    pub(crate) fn limited_to(mut self, session: &Session) -> Self {
        self.hooks = session.limits().hooks.after(&self.hooks);
        if let Some(only) = &session.limits().only {
            self.visibility =
                Arc::new(Visibility::clone(&self.visibility).with_also_only(Some(only.clone())));
        }
        self
    }

    /// The names of the PreToolUse hooks that run for a tool, in order.
    pub(crate) fn screening_hooks(&self, tool: &ToolIdentity) -> Vec<String> {
        let hooks = self.hooks.iter().filter(|hook| hook.handles(HookEvent::PreToolUse, tool));
        hooks.map(|hook| hook.name().to_owned()).collect()
    }

    /// The same with other tools, for a call that waited for one.
    pub(crate) fn with_registry(mut self, registry: Arc<Registry>) -> Self {
        self.registry = registry;
        self
    }

    /// Returns the refusal that every call gets while the gate is shut.
    pub(crate) fn check_open(&self) -> Result<(), Refusal> {
        match &self.shut {
            Some(refusal) => Err(Refusal::clone(refusal)),
            None => Ok(()),
        }
    }
}

/// The boundary. Every call crosses it by [`Gate::call`] or by a [`CallScheduler`](crate::CallScheduler), which run the same
/// path; there is no other way to run a tool.
pub struct Gate {
    current: RwLock<GateSnapshot>,
    /// The rules before compilation, to compile them again when one is granted.
    raw: RwLock<UncompiledRules>,
    /// The hooks of the snapshot, by how long they hold.
    pub(crate) hook_layers: Mutex<HookLayers>,
    pub(crate) grant_store: Option<Arc<dyn GrantStore>>,
    pub(crate) event_bus: EventBus,
    pub(crate) journal: Option<Arc<Journal>>,
    pub(crate) content_checks: Arc<[Arc<dyn ContentCheck>]>,
    pub(crate) approval_timeout: Duration,
    pub(crate) grace: Duration,
    pub(crate) max_concurrency: usize,
    pub(crate) spill: Option<Arc<SpillStore>>,
    pub(crate) batch_chars: usize,
    problems: Vec<RuleProblem>,
    /// The sources that were added and are still there: a tool that is not registered may be on its way.
    sources: Mutex<Vec<Weak<dyn Source>>>,
    /// Counts changes of tools, visibility and rules.
    changes: watch::Sender<u64>,
    /// Reloads what changed outside (settings files) before a call.
    refresh: OnceLock<GateRefreshFn>,
}

type GateRefreshFn = Box<dyn Fn(&Gate) + Send + Sync>;

/// Uncompiled rules: those of the settings, those granted since, and those that end with the turn.
struct UncompiledRules {
    policy: RawPolicy,
    granted: Vec<LayerRules>,
    turn: TurnRules,
}

impl UncompiledRules {
    /// The configured rules with those that were granted in the session and in the turn.
    fn combined_policy(&self) -> RawPolicy {
        let mut whole = self.policy.clone();
        whole.layers.extend(self.granted.iter().chain(self.turn.layers()).cloned());
        whole
    }
}

/// The tools that are visible to a session, each as it is described there. Shares the definitions instead of copying.
pub struct ToolListSnapshot(Vec<(Arc<RegisteredTool>, Option<String>)>);

impl PartialEq for ToolListSnapshot {
    fn eq(&self, other: &Self) -> bool {
        let same = |((tool, description), (other, other_description)): (
            &(Arc<RegisteredTool>, _),
            &(Arc<RegisteredTool>, _),
        )| {
            description == other_description
                && (Arc::ptr_eq(tool, other) || tool.definition() == other.definition())
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl std::fmt::Debug for ToolListSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(tool, _)| &tool.identity.name)).finish()
    }
}

impl Gate {
    /// Builds a gate. Problems with the rules are kept in [`Gate::problems`]; a fatal one means that the gate
    /// denies every call.
    pub fn new(parts: GateParts) -> Self {
        let (policy, problems) = parts.policy.clone().compile();
        Self {
            current: RwLock::new(GateSnapshot {
                registry: Arc::new(Registry::new()),
                policy: Arc::new(policy),
                visibility: Arc::new(parts.visibility),
                hooks: parts.hooks.clone().into(),
                approvers: parts.approvers.into(),
                shut: None,
            }),
            raw: RwLock::new(UncompiledRules {
                policy: parts.policy,
                granted: Vec::new(),
                turn: TurnRules::default(),
            }),
            hook_layers: HookLayers::new(parts.hooks),
            grant_store: parts.grant_store,
            event_bus: EventBus::new(parts.sinks),
            journal: parts.journal,
            content_checks: parts.content_checks.into(),
            approval_timeout: parts.approval_timeout,
            grace: parts.grace,
            max_concurrency: parts.max_concurrency,
            spill: parts.spill,
            batch_chars: parts.batch_chars,
            problems,
            sources: Mutex::default(),
            changes: watch::Sender::new(0),
            refresh: OnceLock::new(),
        }
    }

    /// Problems with the rules.
    pub fn problems(&self) -> &[RuleProblem] {
        &self.problems
    }

    /// Adds a tool, or replaces the one of the same source and name.
    pub fn register<T: Tool>(&self, source: SourceId, tool: T) -> Result<(), RegisterError> {
        self.register_tool(RegisteredTool::new(source, tool)?)
    }

    /// Adds a tool that was made ready before, or replaces the one of the same source and name.
    pub fn register_tool(&self, tool: RegisteredTool) -> Result<(), RegisterError> {
        // Copied only where a call in flight has a snapshot with it. A tool that is refused leaves it as it is.
        self.change(|current| Arc::make_mut(&mut current.registry).register(tool).map(|_| ()))
    }

    /// Removes a tool of a source. False if that source has no tool of that name.
    pub fn unregister(&self, source: &SourceId, name: &str) -> bool {
        self.change(|current| Arc::make_mut(&mut current.registry).unregister(source, name))
    }

    /// Remembers a source by a weak reference, so that it can be dropped.
    pub(crate) fn remember_source(&self, source: &Arc<dyn Source>) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.retain(|source| source.strong_count() > 0);
        sources.push(Arc::downgrade(source));
    }

    /// The source that expects a tool of this name, and the identity that the tool would have.
    pub(crate) fn expecting_source(&self, name: &str) -> Option<(Arc<dyn Source>, SourceId)> {
        let sources: Vec<_> = {
            let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
            sources.iter().filter_map(Weak::upgrade).collect()
        };
        sources.into_iter().find_map(|source| source.expects_tool(name).map(|id| (source, id)))
    }

    /// Changes which tools are visible. Calls in flight finish; later ones do not find a hidden tool.
    pub fn set_visibility(&self, visibility: Visibility) {
        self.change(|current| current.visibility = Arc::new(visibility));
    }

    /// Replaces the rules; grants of this session stay. Returns the problems with the new ones.
    pub fn set_policy(&self, policy: RawPolicy) -> Vec<RuleProblem> {
        self.update_rules(|raw| raw.policy = policy)
    }

    /// Replaces the approvers. Calls in flight keep the ones of their snapshot.
    pub fn set_approvers(&self, approvers: Vec<Arc<dyn Approver>>) {
        self.change(|current| current.approvers = approvers.into());
    }

    /// Shuts the gate: every call is refused with this reason until [`Gate::reopen`]. For settings that can no
    /// longer be read, since they may hold a deny.
    pub fn shut(&self, reason: &str) {
        let refusal = Arc::new(Refusal::new(Code::UnusablePolicy, reason));
        self.change(|current| current.shut = Some(refusal));
    }

    /// Opens the gate again.
    pub fn reopen(&self) {
        self.change(|current| current.shut = None);
    }

    /// Runs this before every call, check and listing, so that rules in files outside are up to date.
    /// It may change the gate. Only the first one is kept.
    pub fn set_refresh_callback(&self, refresh: impl Fn(&Self) + Send + Sync + 'static) {
        let _ = self.refresh.set(Box::new(refresh));
    }

    /// Reloads rules that changed outside. Done before every call.
    pub fn refresh(&self) {
        if let Some(refresh) = self.refresh.get() {
            refresh(self);
        }
    }

    /// The allow rules that were granted in this session.
    pub fn granted_rules(&self) -> Vec<String> {
        let raw = self.raw.read().unwrap_or_else(PoisonError::into_inner);
        raw.granted.iter().flat_map(|layer| &layer.allow).map(|rule| rule.text.clone()).collect()
    }

    /// Revokes an allow rule that was granted in this session. False if there is no such rule.
    pub fn revoke(&self, rule: &str) -> bool {
        self.remove_session_rules(RuleAction::Allow, |granted| granted == rule)
    }

    /// Takes rules back that were added in this session. False if there is none of them.
    pub fn remove_session_rules(&self, action: RuleAction, is_removed: impl Fn(&str) -> bool) -> bool {
        let mut found = false;
        self.update_rules(|raw| {
            for layer in &mut raw.granted {
                let rules = match action {
                    RuleAction::Allow => &mut layer.allow,
                    RuleAction::Ask => &mut layer.ask,
                    RuleAction::Deny => &mut layer.deny,
                };
                let before = rules.len();
                rules.retain(|granted| !is_removed(&granted.text));
                found |= rules.len() < before;
            }
        });
        found
    }

    /// Begins a turn: a user's prompt and everything that follows from it. Rules and hooks of the turn before end.
    ///
    /// An edge that knows turns calls this with each prompt. Where no turn was begun, a skill's pre-approvals have no
    /// effect, because nothing would end them.
    pub fn begin_turn(&self) {
        self.clear_turn_hooks();
        self.update_rules(|raw| raw.turn.begin());
    }

    /// Ends the turn, and with it its rules and hooks.
    pub fn end_turn(&self) {
        self.clear_turn_hooks();
        self.update_rules(|raw| raw.turn.end());
    }

    /// Adds rules that end with the turn. Where no turn was begun, the deny and ask rules hold until one ends, and the
    /// allow rules have no effect: false is returned.
    pub fn add_turn_rules(&self, rules: LayerRules) -> bool {
        let mut is_open = false;
        self.update_rules(|raw| is_open = raw.turn.add(rules));
        is_open
    }

    /// The rules in force, and further ones for one call.
    pub(crate) fn compile_with(&self, rules: &LayerRules) -> Arc<Policy> {
        let raw = self.raw.read().unwrap_or_else(PoisonError::into_inner);
        let mut whole = raw.combined_policy();
        whole.layers.push(rules.clone());
        Arc::new(whole.compile().0)
    }

    /// The rules in force.
    pub fn policy(&self) -> Arc<Policy> {
        self.current().policy
    }

    /// Grants allow rules for the rest of the session.
    pub(crate) fn grant(&self, rules: &[String], anchor: &AbsPath) {
        let mut layer = LayerRules::new(Layer::Session, anchor.clone());
        layer.allow = rules.iter().map(|rule| RawRule::from(rule.as_str())).collect();
        self.update_rules(|raw| raw.granted.push(layer));
    }

    /// Adds rules for the rest of the session, on behalf of the program that embeds the gate: never on behalf of a model.
    /// Returns the problems with all rules in force.
    pub fn add_session_rules(
        &self,
        action: RuleAction,
        rules: &[String],
        anchor: &AbsPath,
    ) -> Vec<RuleProblem> {
        let mut layer = LayerRules::new(Layer::Session, anchor.clone());
        let rules: Vec<RawRule> = rules.iter().map(|rule| RawRule::from(rule.as_str())).collect();
        match action {
            RuleAction::Allow => layer.allow = rules,
            RuleAction::Ask => layer.ask = rules,
            RuleAction::Deny => layer.deny = rules,
        }
        self.update_rules(|raw| raw.granted.push(layer))
    }

    /// Changes the uncompiled rules and compiles them, under a lock, so that no change is lost.
    fn update_rules(&self, change: impl FnOnce(&mut UncompiledRules)) -> Vec<RuleProblem> {
        let mut raw = self.raw.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut raw);
        let (policy, problems) = raw.combined_policy().compile();
        self.change(|current| current.policy = Arc::new(policy));
        problems
    }

    /// The visible tools, in name order, described for this session.
    pub fn definitions(&self, session: &Session) -> Vec<ToolDefinition> {
        let mut definitions = Vec::new();
        self.for_each_visible_tool(session, |tool, description| {
            let mut definition = tool.definition().clone();
            if let Some(description) = description {
                definition.description = description;
            }
            definitions.push(definition);
        });
        definitions
    }

    /// Makes the definitions that [`Gate::definitions`] will return. Most of their time is the schemas, which are made
    /// once; a server calls this on another thread while a client opens its connection.
    pub fn prepare_definitions(&self, session: &Session) {
        self.for_each_visible_tool(session, |tool, _| _ = tool.definition());
    }

    /// The tools that can be called but are not in [`Gate::definitions`], in name order.
    pub fn unlisted_tools(&self, session: &Session) -> Vec<Arc<RegisteredTool>> {
        self.refresh();
        let current = self.current().limited_to(session);
        let listing = ToolListing::new(&current, session);
        let is_unlisted = |tool: &&Arc<RegisteredTool>| {
            !listing.is_listed(tool) && current.visibility.is_visible(&tool.identity, &current.policy)
        };
        current.registry.list().filter(is_unlisted).cloned().collect()
    }

    /// Lists tools for a session from now on. Names of tools that do not exist or are hidden have no effect.
    pub fn list_tools(&self, session: &Session, names: impl IntoIterator<Item = String>) {
        if session.state::<FoundTools>().add(names) {
            self.change(|_| ());
        }
    }

    /// A snapshot of [`Gate::definitions`], to be compared with a later one.
    pub fn tool_list_snapshot(&self, session: &Session) -> ToolListSnapshot {
        let mut shown = Vec::new();
        self.for_each_visible_tool(session, |tool, description| shown.push((Arc::clone(tool), description)));
        ToolListSnapshot(shown)
    }

    /// Visits the visible tools, each with its description for this session where that differs from its usual one.
    fn for_each_visible_tool(
        &self,
        session: &Session,
        mut each: impl FnMut(&Arc<RegisteredTool>, Option<String>),
    ) {
        self.refresh();
        let current = self.current().limited_to(session);
        let context = CallContext::of(session);
        let listing = ToolListing::new(&current, session);
        for tool in current.registry.list() {
            let is_visible = current.visibility.is_visible(&tool.identity, &current.policy);
            if listing.is_listed(tool) && is_visible && tool.tool.is_enabled(&context) {
                each(tool, tool.tool.describe(&context));
            }
        }
    }

    /// The identity of every registered tool, whether it is visible or not.
    pub fn registered_tools(&self) -> Vec<ToolIdentity> {
        self.current().registry.list().map(|tool| tool.identity.clone()).collect()
    }

    /// The names and aliases of every registered tool, whether it is visible or not.
    pub fn registered_names(&self) -> BTreeSet<String> {
        let names = |tool: ToolIdentity| std::iter::once(tool.name.as_str().to_owned()).chain(tool.also);
        self.registered_tools().into_iter().flat_map(names).collect()
    }

    /// A visible tool, by its name or an alias.
    pub fn definition(&self, name: &str) -> Option<ToolDefinition> {
        let current = self.current();
        let tool = current.registry.get(name)?;
        current.visibility.is_visible(&tool.identity, &current.policy).then(|| tool.definition().clone())
    }

    /// Whether a tool of that name declares a schema for its structured results.
    pub fn has_output_schema(&self, name: &str) -> bool {
        self.current().registry.get(name).is_some_and(|tool| tool.definition().output_schema.is_some())
    }

    /// Whether a tool of that name is built in and only reads.
    pub fn is_builtin_read_only(&self, name: &str) -> bool {
        let current = self.current();
        let tool = current.registry.get(name);
        tool.is_some_and(|tool| tool.identity.read_only && tool.identity.source == SourceId::Builtin)
    }

    /// Subscribes to events. A receiver that is too slow misses the oldest events and learns how many.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.event_bus.subscribe()
    }

    /// Wakes whenever the visible tools may have changed. Cheaper than [`Gate::events`], because no event is
    /// made for calls.
    pub fn watch_tool_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The parts in force now. A call keeps the snapshot that it began with.
    pub(crate) fn current(&self) -> GateSnapshot {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the parts in force, and notifies everything that lists tools.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut GateSnapshot) -> T) -> T {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let out = change(&mut current);
        drop(current);
        self.changes.send_modify(|count| *count += 1);
        self.event_bus.publish(|| Event::ToolsChanged);
        out
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("registry", &self.current().registry).finish_non_exhaustive()
    }
}
