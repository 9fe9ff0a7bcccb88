//! `Agent(type)`: which agents may be started. `Task(type)` is the older spelling.

use std::collections::HashMap;

/// The agent's type, exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentPattern(pub(crate) String);

/// Agent rules of one action.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentIndex(HashMap<String, u32>);

impl AgentIndex {
    pub(crate) fn add(&mut self, id: u32, pattern: AgentPattern) {
        self.0.entry(pattern.0).or_insert(id);
    }

    pub(crate) fn find(&self, agent: &str) -> Option<u32> {
        self.0.get(agent).copied()
    }
}
