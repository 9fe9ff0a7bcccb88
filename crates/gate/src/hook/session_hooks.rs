//! Hooks that hold for a part of a session only: those of a subagent, for it and the agents that it starts.

use super::Hook;
use std::fmt;
use std::sync::Arc;

/// Hooks of a part of a session, in the order in which they run: after those of the gate.
#[derive(Clone, Default)]
pub struct SessionHooks {
    hooks: Vec<Arc<dyn Hook>>,
}

impl SessionHooks {
    /// These hooks.
    pub fn new(hooks: Vec<Arc<dyn Hook>>) -> Self {
        Self { hooks }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    /// The same, with those of a part of this part after them.
    pub(crate) fn with_inner(&self, inner: &Self) -> Self {
        Self { hooks: self.hooks.iter().chain(&inner.hooks).cloned().collect() }
    }

    /// The hooks, after others.
    pub(crate) fn after(&self, others: &Arc<[Arc<dyn Hook>]>) -> Arc<[Arc<dyn Hook>]> {
        match self.hooks.is_empty() {
            true => Arc::clone(others),
            false => others.iter().chain(&self.hooks).cloned().collect(),
        }
    }
}

impl fmt::Debug for SessionHooks {
    /// Shows the names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.hooks.iter().map(|hook| hook.name())).finish()
    }
}

impl PartialEq for SessionHooks {
    /// The very same hooks.
    fn eq(&self, other: &Self) -> bool {
        self.hooks.len() == other.hooks.len()
            && self.hooks.iter().zip(&other.hooks).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

impl Eq for SessionHooks {}
