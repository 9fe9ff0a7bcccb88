//! The parts that an agent is made of.

use crate::agent_event::{AgentObserver, AgentOrigin};
use crate::agent_hook::AgentHook;
use crate::agent_settings::AgentSettings;
use crate::conversation::ConversationMessage;
use crate::provider::ModelClient;
use crate::token_usage::UsageMeter;
use std::sync::Arc;
use toolgate_gate::{Gate, Session};
/// The parts of an agent.
#[non_exhaustive]
pub struct AgentParts {
    /// The boundary for its calls.
    pub gate: Arc<Gate>,
    /// The session of its calls.
    pub session: Session,
    /// The model's provider.
    pub client: ModelClient,
    /// What the run wants.
    pub settings: AgentSettings,
    /// Counts tokens and cost of the whole run.
    pub meter: Arc<UsageMeter>,
    /// Receive every event of the agent.
    pub observers: Vec<Arc<dyn AgentObserver>>,
    /// Hooks around calls.
    pub hooks: Vec<Arc<dyn AgentHook>>,
    /// Which agent this is.
    pub origin: AgentOrigin,
    /// The conversation so far.
    pub conversation: Vec<ConversationMessage>,
}

impl AgentParts {
    /// An agent without observers, hooks, budget and earlier conversation.
    pub fn new(gate: Arc<Gate>, session: Session, client: ModelClient, settings: AgentSettings) -> Self {
        Self {
            gate,
            session,
            client,
            settings,
            meter: Arc::new(UsageMeter::new(None, None)),
            observers: Vec::new(),
            hooks: Vec::new(),
            origin: AgentOrigin::default(),
            conversation: Vec::new(),
        }
    }

    /// Sets the meter, which may have a price and a budget.
    pub fn with_meter(mut self, meter: Arc<UsageMeter>) -> Self {
        self.meter = meter;
        self
    }

    /// Sets the observers.
    pub fn with_observers(mut self, observers: Vec<Arc<dyn AgentObserver>>) -> Self {
        self.observers = observers;
        self
    }

    /// Sets the hooks around calls.
    pub fn with_hooks(mut self, hooks: Vec<Arc<dyn AgentHook>>) -> Self {
        self.hooks = hooks;
        self
    }

    /// Sets the conversation to continue.
    pub fn with_conversation(mut self, conversation: Vec<ConversationMessage>) -> Self {
        self.conversation = conversation;
        self
    }
}
