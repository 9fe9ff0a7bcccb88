//! `Agent(type)`: rules for starting agents. `Task(type)` is the older spelling.

use std::collections::HashMap;

/// The exact type of an agent; agent rules have no wildcards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentPattern(pub(crate) String);

/// Agent rules of one action: the first rule for each type.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentIndex(HashMap<String, u32>);

impl AgentIndex {
    /// Adds a rule; of several for the same type the first one is kept.
    pub(crate) fn add(&mut self, id: u32, pattern: AgentPattern) {
        self.0.entry(pattern.0).or_insert(id);
    }

    /// The first rule for this type of agent.
    pub(crate) fn find(&self, agent: &str) -> Option<u32> {
        self.0.get(agent).copied()
    }
}
