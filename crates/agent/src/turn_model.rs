//! The model and the effort that a skill wants for the rest of a turn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use toolgate_gate::Session;

/// What a skill wants of the model until the turn ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnModel {
    /// The model; absent or `inherit` means the one of the session.
    pub model: Option<String>,
    /// How much effort it makes.
    pub effort: Option<String>,
}

/// What the skills of a session requested, by the id of the agent that loaded them; `None` is the main loop.
#[derive(Debug, Default)]
struct TurnModels(Mutex<HashMap<Option<String>, TurnModel>>);

impl TurnModel {
    /// A request for this model and this effort; `None` keeps what the session has.
    pub fn new(model: Option<String>, effort: Option<String>) -> Self {
        Self { model, effort }
    }

    /// Has the agent of this part of a session use it until its turn ends. What an earlier skill of the turn wanted, and
    /// this one does not say, stays.
    pub fn apply(self, session: &Session) {
        let models: Arc<TurnModels> = session.state();
        let mut models = models.0.lock().unwrap_or_else(PoisonError::into_inner);
        let requested = models.entry(agent_of(session)).or_default();
        requested.model = self.model.or_else(|| requested.model.take());
        requested.effort = self.effort.or_else(|| requested.effort.take());
    }

    /// What holds now for the agent of this part of a session.
    pub(crate) fn of(session: &Session) -> Self {
        let models: Arc<TurnModels> = session.state();
        let models = models.0.lock().unwrap_or_else(PoisonError::into_inner);
        models.get(&agent_of(session)).cloned().unwrap_or_default()
    }

    /// Ends what holds for the agent of this part of a session.
    pub(crate) fn clear(session: &Session) {
        let models: Arc<TurnModels> = session.state();
        models.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&agent_of(session));
    }
}

/// The agent that a part of a session belongs to; none for the main loop.
pub(crate) fn agent_of(session: &Session) -> Option<String> {
    let principal = session.principal();
    principal.name.clone().filter(|_| principal.edge == "subagent")
}
