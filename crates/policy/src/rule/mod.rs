//! Rules, compiled.

use crate::raw::{Action, LayerRules, Problem, RawRule, Weight};
use toolgate_proto::{RuleRef, ToolIdentity};

/// A rule that can be matched.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) action: Action,
    pub(crate) tool: String,
    pub(crate) reference: RuleRef,
}

impl Rule {
    pub(crate) fn parse(layer: &LayerRules, action: Action, raw: &RawRule) -> Result<Self, Problem> {
        let reference = layer.reference(action, raw);
        let bare = raw.text.strip_suffix("(*)").unwrap_or(&raw.text);
        let well_formed =
            !bare.is_empty() && bare.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !well_formed {
            return Err(Problem {
                rule: reference,
                weight: if action == Action::Allow { Weight::Warning } else { Weight::Fatal },
                message: "the rule cannot be read".to_owned(),
                fix: "write the name of a tool".to_owned(),
            });
        }
        Ok(Self { action, tool: bare.to_owned(), reference })
    }

    pub(crate) fn matches(&self, tool: &ToolIdentity) -> bool {
        tool.answers_to(&self.tool)
    }
}
