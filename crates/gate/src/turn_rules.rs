//! Rules that end with a turn: what a skill asked for until the next prompt.

use toolgate_policy::LayerRules;

/// The rules of the present turn.
#[derive(Debug, Default)]
pub(crate) struct TurnRules {
    /// Whether the edge said that a turn has begun, and so will say when it ends.
    is_open: bool,
    layers: Vec<LayerRules>,
}

impl TurnRules {
    /// Begins a turn without rules.
    pub(crate) fn begin(&mut self) {
        self.is_open = true;
        self.layers.clear();
    }

    /// Ends the turn.
    pub(crate) fn end(&mut self) {
        self.is_open = false;
        self.layers.clear();
    }

    /// Adds rules. Without a turn nothing would take an allow rule back, so it is not added; what restricts is.
    pub(crate) fn add(&mut self, mut rules: LayerRules) -> bool {
        if !self.is_open {
            rules.allow.clear();
        }
        if !(rules.allow.is_empty() && rules.ask.is_empty() && rules.deny.is_empty()) {
            self.layers.push(rules);
        }
        self.is_open
    }

    /// The rules, as they were added.
    pub(crate) fn layers(&self) -> &[LayerRules] {
        &self.layers
    }
}
