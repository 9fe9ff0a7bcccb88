//! The gate: what it is made of, and how it is changed while it stands.

use crate::approve::Approver;
use crate::hook::Hook;
use crate::registry::{RegisterError, Registered, Registry};
use crate::scene::{Scene, Session};
use crate::schedule::BatchWatcher;
use crate::sink::Sink;
use crate::tool::Tool;
use crate::trail::Audience;
use crate::visibility::Visibility;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use toolgate_os::{ContentCheck, Journal, Spill};
use toolgate_policy::{Layer, LayerRules, Policy, Problem, RawPolicy, RawRule};
use toolgate_proto::{AbsPath, Event, SourceId, ToolDefinition};

/// What a gate is made of.
pub struct GateParts {
    /// The rules and the mode.
    pub policy: RawPolicy,
    /// The choice of tools.
    pub visibility: Visibility,
    /// Hooks, in the order in which they are told.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// Approvers, in the order in which they are asked.
    pub approvers: Vec<Arc<dyn Approver>>,
    /// Where records go.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// Where changes of files are recorded, so that they can be undone. Without one nothing is.
    pub journal: Option<Arc<Journal>>,
    /// What new contents of files must pass before they are put in place.
    pub content_checks: Vec<Arc<dyn ContentCheck>>,
    /// How long a question may wait for its answer.
    pub approval_timeout: Duration,
    /// How long a cancelled tool may take to end by itself.
    pub grace: Duration,
    /// How many calls of one batch may go on at once; at least one.
    pub max_concurrency: usize,
    /// Who is told when all calls of a batch are over.
    pub batch_watchers: Vec<Arc<dyn BatchWatcher>>,
    /// Where results are kept that are too large for a model. Without it they are cut, and the rest is gone.
    pub spill: Option<Arc<Spill>>,
    /// Most characters of all results of a batch together.
    pub batch_chars: usize,
}

impl Default for GateParts {
    fn default() -> Self {
        Self {
            policy: RawPolicy::default(),
            visibility: Visibility::default(),
            hooks: Vec::new(),
            approvers: Vec::new(),
            sinks: Vec::new(),
            journal: None,
            content_checks: Vec::new(),
            approval_timeout: Duration::from_secs(300),
            grace: Duration::from_secs(2),
            max_concurrency: 10,
            batch_watchers: Vec::new(),
            spill: None,
            batch_chars: 400_000,
        }
    }
}

/// What may change while calls are under way. A call works with the values it found when it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    pub(crate) registry: Arc<Registry>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) visibility: Arc<Visibility>,
}

/// The boundary. Every call crosses it by [`Gate::call`]; there is no other way to run a tool.
pub struct Gate {
    current: RwLock<Current>,
    /// The rules as written, for compiling them anew when one is granted.
    raw: RwLock<RawPolicy>,
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    pub(crate) approvers: Vec<Arc<dyn Approver>>,
    pub(crate) audience: Audience,
    pub(crate) journal: Option<Arc<Journal>>,
    pub(crate) content_checks: Arc<[Arc<dyn ContentCheck>]>,
    pub(crate) approval_timeout: Duration,
    pub(crate) grace: Duration,
    pub(crate) max_concurrency: usize,
    pub(crate) batch_watchers: Vec<Arc<dyn BatchWatcher>>,
    pub(crate) spill: Option<Arc<Spill>>,
    pub(crate) batch_chars: usize,
    problems: Vec<Problem>,
    /// Counts changes of the tools, the choice of them and the rules.
    changes: watch::Sender<u64>,
}

impl Gate {
    /// Puts a gate together. Problems with the rules are kept in [`Gate::problems`]; a fatal one means that the gate
    /// denies every call.
    pub fn new(parts: GateParts) -> Self {
        let (policy, problems) = parts.policy.clone().compile();
        let (events, _) = broadcast::channel(1024);
        Self {
            current: RwLock::new(Current {
                registry: Arc::new(Registry::new()),
                policy: Arc::new(policy),
                visibility: Arc::new(parts.visibility),
            }),
            raw: RwLock::new(parts.policy),
            hooks: parts.hooks,
            approvers: parts.approvers,
            audience: Audience { sinks: parts.sinks.into(), events },
            journal: parts.journal,
            content_checks: parts.content_checks.into(),
            approval_timeout: parts.approval_timeout,
            grace: parts.grace,
            max_concurrency: parts.max_concurrency,
            batch_watchers: parts.batch_watchers,
            spill: parts.spill,
            batch_chars: parts.batch_chars,
            problems,
            changes: watch::Sender::new(0),
        }
    }

    /// What is wrong with the rules.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Adds a tool, or replaces the one of the same source and name.
    pub fn register<T: Tool>(&self, source: SourceId, tool: T) -> Result<(), RegisterError> {
        let newcomer = Registered::new(source, tool)?;
        self.change(|current| {
            let mut registry = Registry::clone(&current.registry);
            registry.register(newcomer)?;
            current.registry = Arc::new(registry);
            Ok(())
        })
    }

    /// Removes a tool of a source. False if that source has no tool of that name.
    pub fn unregister(&self, source: &SourceId, name: &str) -> bool {
        self.change(|current| {
            let mut registry = Registry::clone(&current.registry);
            let removed = registry.unregister(source, name);
            current.registry = Arc::new(registry);
            removed
        })
    }

    /// Chooses anew which tools are shown. Calls under way finish; later ones do not find a hidden tool.
    pub fn set_visibility(&self, visibility: Visibility) {
        self.change(|current| current.visibility = Arc::new(visibility));
    }

    /// Replaces the rules. Returns what is wrong with the new ones.
    pub fn set_policy(&self, raw: RawPolicy) -> Vec<Problem> {
        let (policy, problems) = raw.clone().compile();
        *self.raw.write().unwrap_or_else(PoisonError::into_inner) = raw;
        self.change(|current| current.policy = Arc::new(policy));
        problems
    }

    /// The rules in force.
    pub fn policy(&self) -> Arc<Policy> {
        self.current().policy
    }

    /// Grants an allow rule for the rest of the session.
    pub(crate) fn grant(&self, rule: &str, anchor: &AbsPath) {
        let mut raw = self.raw.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut layer = LayerRules::new(Layer::Session, anchor.clone());
        layer.allow.push(RawRule::from(rule));
        raw.layers.push(layer);
        self.set_policy(raw);
    }

    /// The tools that are shown, in name order, described for this session.
    pub fn definitions(&self, session: &Session) -> Vec<ToolDefinition> {
        let current = self.current();
        let scene = Scene::of(session);
        current
            .registry
            .list()
            .filter(|tool| current.visibility.shows(&tool.identity, &current.policy))
            .map(|tool| {
                let mut definition = tool.definition().clone();
                if let Some(description) = tool.tool.describe(&scene) {
                    definition.description = description;
                }
                definition
            })
            .collect()
    }

    /// One tool that is shown, by its name or an alias.
    pub fn definition(&self, name: &str) -> Option<ToolDefinition> {
        let current = self.current();
        let tool = current.registry.get(name)?;
        current.visibility.shows(&tool.identity, &current.policy).then(|| tool.definition().clone())
    }

    /// Watches what happens. A watcher that is too slow misses the oldest events and is told how many.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.audience.events.subscribe()
    }

    /// Wakes whenever the tools that are shown may have changed. Cheaper than [`Gate::events`], because nothing is
    /// gathered about calls.
    pub fn tools_changed(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(crate) fn current(&self) -> Current {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Current) -> T) -> T {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let out = change(&mut current);
        drop(current);
        self.changes.send_modify(|count| *count += 1);
        self.audience.tell(|| Event::ToolsChanged);
        out
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("current", &self.current).finish_non_exhaustive()
    }
}
