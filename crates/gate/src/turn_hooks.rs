//! Hooks that end with a turn: those of a skill, from its use until the next prompt.

use crate::gate::Gate;
use crate::hook::Hook;
use std::sync::{Arc, Mutex, PoisonError};

/// The hooks of a gate, by how long they hold.
#[derive(Default)]
pub(crate) struct HookLayers {
    /// Those of settings, plugins and the embedding program.
    base: Vec<Arc<dyn Hook>>,
    /// Those of the present turn, by what brought them.
    turn: Vec<(String, Vec<Arc<dyn Hook>>)>,
}

impl HookLayers {
    /// Layers with hooks that stay.
    pub(crate) fn new(base: Vec<Arc<dyn Hook>>) -> Mutex<Self> {
        Mutex::new(Self { base, turn: Vec::new() })
    }
}

impl Gate {
    /// Replaces the hooks, except those of the turn. Calls in flight keep the ones of their snapshot.
    pub fn set_hooks(&self, hooks: Vec<Arc<dyn Hook>>) {
        self.update_hooks(|layers| {
            layers.base = hooks;
            true
        });
    }

    /// Adds hooks that end with the turn, after all others; `key` names what brings them, and replaces what it brought
    /// before. Where no turn was begun they hold until one ends: what screens calls must not be lost.
    pub fn add_turn_hooks(&self, key: &str, hooks: Vec<Arc<dyn Hook>>) {
        self.update_hooks(|layers| {
            layers.turn.retain(|(known, _)| known != key);
            layers.turn.push((key.to_owned(), hooks));
            true
        });
    }

    /// Ends the hooks of the turn.
    pub(crate) fn clear_turn_hooks(&self) {
        self.update_hooks(|layers| {
            let had_some = !layers.turn.is_empty();
            layers.turn.clear();
            had_some
        });
    }

    /// Changes the hooks under a lock, so that no change is lost. `change` says whether it changed anything.
    fn update_hooks(&self, change: impl FnOnce(&mut HookLayers) -> bool) {
        let mut layers = self.hook_layers.lock().unwrap_or_else(PoisonError::into_inner);
        if change(&mut layers) {
            let of_turn = layers.turn.iter().flat_map(|(_, hooks)| hooks);
            let all: Arc<[Arc<dyn Hook>]> = layers.base.iter().chain(of_turn).cloned().collect();
            self.change(|current| current.hooks = all);
        }
    }
}
