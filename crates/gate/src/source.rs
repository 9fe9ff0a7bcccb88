//! Where tools come from.
//!
//! A [`Source`] brings tools behind the gate and keeps them up to date: the built-in tools, the gateway to MCP servers,
//! a plugin.
//! [`Gate::add_source`] asks it for its tools and starts it; from then on it changes them by the [`SourceTools`] that it
//! was given.
//!
//! A source registers and removes its own tools only.
//! A source that is closed leaves nothing behind: its tools are removed, and a task of it that is late can register no
//! more.

use crate::gate::Gate;
use crate::registry::{RegisterError, RegisteredTool};
use crate::tool::Tool;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use toolgate_proto::{Refusal, SourceId};

/// A source of tools.
///
/// A source with a fixed set of tools implements [`Source::id`] and [`Source::tools`] and nothing else.
/// A source whose tools come and go also implements [`Source::start`], keeps the [`SourceTools`] that it gets there, and
/// ends its work in [`Source::close`].
pub trait Source: Send + Sync {
    /// The identity under which its tools are registered. Always the same.
    fn id(&self) -> SourceId;

    /// Registers the tools that it has now. Must be quick: what needs a connection is registered later, by a task that
    /// [`Source::start`] spawns.
    ///
    /// An error means that the source is not added, and none of its tools is kept.
    fn tools(&self, tools: &SourceTools) -> Result<(), RegisterError>;

    /// Starts whatever finds out that tools have come or gone: a connection, a watcher. Called once, after
    /// [`Source::tools`]; a source that spawns tasks here must be added inside a Tokio runtime.
    fn start(&self, tools: &Arc<SourceTools>) -> Result<(), RegisterError> {
        let _ = tools;
        Ok(())
    }

    /// Brings the registered tools up to date. By default [`Source::tools`] is asked again, and a tool that it does not
    /// register any more is removed.
    fn refresh<'a>(&'a self, tools: &'a SourceTools) -> BoxFuture<'a, Result<(), RegisterError>> {
        Box::pin(std::future::ready(tools.replace_all(|tools| self.tools(tools))))
    }

    /// The identity of a tool that is not registered and that it may still register under this name, or that it cannot
    /// register for a reason that [`Source::wait_for_tool`] knows. None where it has nothing to do with the name.
    fn expects_tool(&self, name: &str) -> Option<SourceId> {
        let _ = name;
        None
    }

    /// Waits until a tool that [`Source::expects_tool`] names is registered, or it is known that it will not be. Returns
    /// the reason in the second case. Must end by itself, also where nothing happens.
    fn wait_for_tool<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Refusal>> {
        let _ = name;
        Box::pin(std::future::ready(None))
    }

    /// Ends what [`Source::start`] started, and waits for its end. Its tools are removed already.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Behind an [`Arc`], so that a program can keep a source that it passes to the builder.
impl<S: Source + ?Sized> Source for Arc<S> {
    fn id(&self) -> SourceId {
        (**self).id()
    }

    fn tools(&self, tools: &SourceTools) -> Result<(), RegisterError> {
        (**self).tools(tools)
    }

    fn start(&self, tools: &Arc<SourceTools>) -> Result<(), RegisterError> {
        (**self).start(tools)
    }

    fn refresh<'a>(&'a self, tools: &'a SourceTools) -> BoxFuture<'a, Result<(), RegisterError>> {
        (**self).refresh(tools)
    }

    fn expects_tool(&self, name: &str) -> Option<SourceId> {
        (**self).expects_tool(name)
    }

    fn wait_for_tool<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Refusal>> {
        (**self).wait_for_tool(name)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        (**self).close()
    }
}

/// The tools of one source behind one gate. The source registers and removes them here.
pub struct SourceTools {
    /// Weak, so that the task of a source does not keep a gate alive that nothing else uses.
    gate: Weak<Gate>,
    id: SourceId,
    state: Mutex<SourceToolsState>,
}

/// The tools that a source has registered.
#[derive(Debug, Default)]
struct SourceToolsState {
    closed: bool,
    /// Counts calls of [`SourceTools::replace_all`].
    generation: u64,
    /// By name: the identity that the tool is registered under, and the generation that registered it last.
    registered: BTreeMap<String, (SourceId, u64)>,
}

impl SourceTools {
    /// The tools of a source behind a gate, which it does not keep from being dropped.
    fn new(gate: &Arc<Gate>, id: SourceId) -> Self {
        Self { gate: Arc::downgrade(gate), id, state: Mutex::default() }
    }

    /// Adds a tool under the identity of the source, or replaces the one of that name.
    pub fn register<T: Tool>(&self, tool: T) -> Result<(), RegisterError> {
        self.register_as(self.id.clone(), tool)
    }

    /// Adds a tool under an identity of its own: each tool of an MCP server has one.
    pub fn register_as<T: Tool>(&self, id: SourceId, tool: T) -> Result<(), RegisterError> {
        self.register_tool(RegisteredTool::new(id, tool)?)
    }

    /// Adds a tool that was made ready before.
    pub fn register_tool(&self, tool: RegisteredTool) -> Result<(), RegisterError> {
        let (name, id) = (tool.identity.name.clone(), tool.identity.source.clone());
        let mut state = self.lock();
        let gate = self.gate.upgrade().filter(|_| !state.closed);
        gate.ok_or_else(|| RegisterError::SourceClosed { name: name.clone() })?.register_tool(tool)?;
        let generation = state.generation;
        state.registered.insert(name.as_str().to_owned(), (id, generation));
        Ok(())
    }

    /// Removes a tool of this source. False if the source has no tool of that name.
    pub fn remove(&self, name: &str) -> bool {
        let mut state = self.lock();
        let Some((id, _)) = state.registered.remove(name) else { return false };
        self.gate.upgrade().is_some_and(|gate| gate.unregister(&id, name))
    }

    /// Registers the tools anew by `register`, then removes those that it did not register. After an error nothing is
    /// removed.
    pub fn replace_all(
        &self,
        register: impl FnOnce(&Self) -> Result<(), RegisterError>,
    ) -> Result<(), RegisterError> {
        let generation = {
            let mut state = self.lock();
            state.generation += 1;
            state.generation
        };
        register(self)?;
        let gone: Vec<String> = {
            let state = self.lock();
            let old = state.registered.iter().filter(|(_, (_, registered))| *registered < generation);
            old.map(|(name, _)| name.clone()).collect()
        };
        for name in gone {
            self.remove(&name);
        }
        Ok(())
    }

    /// The gate, for a tool that makes a further call: what it finds out while it runs is judged as a call of its own.
    /// `None` when the gate is gone.
    pub fn gate(&self) -> Option<Arc<Gate>> {
        self.gate.upgrade()
    }

    /// The names of its tools, in order.
    pub fn names(&self) -> Vec<String> {
        self.lock().registered.keys().cloned().collect()
    }

    /// Removes every tool, and takes no more.
    fn close(&self) {
        let registered = {
            let mut state = self.lock();
            state.closed = true;
            std::mem::take(&mut state.registered)
        };
        let Some(gate) = self.gate.upgrade() else { return };
        for (name, (id, _)) in registered {
            gate.unregister(&id, &name);
        }
    }

    /// Locks the state; a panic of another thread leaves it usable.
    fn lock(&self) -> MutexGuard<'_, SourceToolsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SourceTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceTools")
            .field("id", &self.id)
            .field("names", &self.names())
            .finish_non_exhaustive()
    }
}

/// A source that was added to a gate.
#[derive(Clone)]
pub struct AttachedSource {
    source: Arc<dyn Source>,
    tools: Arc<SourceTools>,
}

impl AttachedSource {
    /// The identity of the source.
    pub fn id(&self) -> &SourceId {
        &self.tools.id
    }

    /// The tools of the source, as they are registered now.
    pub fn tools(&self) -> &Arc<SourceTools> {
        &self.tools
    }

    /// Brings the tools of the source up to date.
    pub async fn refresh(&self) -> Result<(), RegisterError> {
        self.source.refresh(&self.tools).await
    }

    /// Removes the tools of the source, and ends it. Calls under way go on until the source ends them.
    pub async fn close(&self) {
        self.tools.close();
        self.source.close().await;
    }
}

impl std::fmt::Debug for AttachedSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AttachedSource").field("tools", &self.tools).finish_non_exhaustive()
    }
}

impl Gate {
    /// Registers the tools of a source, and starts it. If it fails, nothing of the source stays registered.
    pub fn add_source(
        self: &Arc<Self>,
        source: impl Source + 'static,
    ) -> Result<AttachedSource, RegisterError> {
        let source: Arc<dyn Source> = Arc::new(source);
        let tools = Arc::new(SourceTools::new(self, source.id()));
        match source.tools(&tools).and_then(|()| source.start(&tools)) {
            Ok(()) => {
                self.remember_source(&source);
                Ok(AttachedSource { source, tools })
            }
            Err(problem) => {
                tools.close();
                Err(problem)
            }
        }
    }
}
