//! What would have to change for a call to be allowed.
//!
//! Every objection has a remedy, and advice is all of them: a hint that removes one reason and meets the next is worth
//! nothing. A property applies the advised changes and requires the promised verdict.

use crate::raw::{Layer, LayerRules, RawPolicy, RuleAction};
use serde::{Deserialize, Serialize};
use toolgate_proto::{AbsPath, Mode, RuleRef};

/// The setting of the mode.
const MODE_KEY: &str = "permissions.defaultMode";

/// The changes that would allow a call, all together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SettingsAdvice {
    /// What to change. Empty if there is nothing to advise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<SettingsChange>,
    /// Only managed allow rules count.
    #[serde(skip_serializing_if = "is_false")]
    pub managed_only: bool,
    /// After the changes the user still has to approve each such call.
    #[serde(rename = "needsPerson", skip_serializing_if = "is_false")]
    pub needs_user: bool,
    /// No change of settings allows the call.
    #[serde(skip_serializing_if = "is_false")]
    pub is_final: bool,
    /// Of the rules to add, those without which the call is denied, so that no user is asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denial_rules: Vec<String>,
    /// Why no rule for exactly the call is advised, if it could not be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_rule_reason: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum SettingsChange {
    /// Add these rules to `permissions.allow`.
    AddAllow {
        /// The rules.
        rules: Vec<String>,
    },
    /// Remove a rule, or narrow it so that it does not match.
    RemoveRule {
        /// Which, with its file and line.
        rule: RuleRef,
    },
    /// Correct an invalid rule.
    FixRule {
        /// Which, with its file and line.
        rule: RuleRef,
    },
    /// Use another mode than this.
    LeaveMode {
        /// The mode in force.
        mode: Mode,
    },
    /// Change another setting.
    ChangeSetting {
        /// As an imperative sentence.
        text: String,
    },
    /// Trust the project, whose allow rules then count.
    TrustProject {
        /// The rule that would allow the call, with its file and line.
        rule: RuleRef,
    },
    /// Run a command.
    RunCommand {
        /// The command line.
        command: String,
    },
    /// Do what the message of the hook says.
    FollowHook,
}

impl SettingsAdvice {
    /// Adds a rule to those to add.
    pub(crate) fn add_allow(&mut self, rule: &str) {
        let added = self.changes.iter_mut().find_map(|change| match change {
            SettingsChange::AddAllow { rules } => Some(rules),
            SettingsChange::RemoveRule { .. }
            | SettingsChange::FixRule { .. }
            | SettingsChange::LeaveMode { .. }
            | SettingsChange::ChangeSetting { .. }
            | SettingsChange::TrustProject { .. }
            | SettingsChange::RunCommand { .. }
            | SettingsChange::FollowHook => None,
        });
        match added {
            Some(rules) if rules.iter().any(|other| other == rule) => {}
            Some(rules) => rules.push(rule.to_owned()),
            None => self.changes.push(SettingsChange::AddAllow { rules: vec![rule.to_owned()] }),
        }
    }

    /// Notes a rule without which the call is denied, once.
    pub(crate) fn add_denial_rule(&mut self, rule: String) {
        if !self.denial_rules.contains(&rule) {
            self.denial_rules.push(rule);
        }
    }

    /// Adds a change, once.
    pub(crate) fn add_change(&mut self, change: SettingsChange) {
        if !self.changes.contains(&change) {
            self.changes.push(change);
        }
    }

    /// Whether a rule stands in the way, behind which there may be others.
    pub(crate) fn names_rules(&self) -> bool {
        self.changes.iter().any(|change| match change {
            SettingsChange::RemoveRule { .. } | SettingsChange::FixRule { .. } => true,
            SettingsChange::AddAllow { .. }
            | SettingsChange::LeaveMode { .. }
            | SettingsChange::ChangeSetting { .. }
            | SettingsChange::TrustProject { .. }
            | SettingsChange::RunCommand { .. }
            | SettingsChange::FollowHook => false,
        })
    }

    /// Adds what is advised after these changes. False if that is nothing new.
    pub(crate) fn merge(&mut self, next: Self) -> bool {
        let before = self.clone();
        self.needs_user |= next.needs_user;
        self.is_final |= next.is_final;
        self.no_rule_reason = self.no_rule_reason.take().or(next.no_rule_reason);
        next.denial_rules.into_iter().for_each(|rule| self.add_denial_rule(rule));
        for change in next.changes {
            match change {
                SettingsChange::AddAllow { rules } => rules.iter().for_each(|rule| self.add_allow(rule)),
                change @ (SettingsChange::RemoveRule { .. }
                | SettingsChange::FixRule { .. }
                | SettingsChange::LeaveMode { .. }
                | SettingsChange::ChangeSetting { .. }
                | SettingsChange::TrustProject { .. }
                | SettingsChange::RunCommand { .. }
                | SettingsChange::FollowHook) => self.add_change(change),
            }
        }
        self.drop_useless_rules();
        *self != before
    }

    /// Takes back the advice to add rules.
    pub(crate) fn drop_rules(&mut self) {
        self.changes.retain(|change| !matches!(change, SettingsChange::AddAllow { .. }));
    }

    /// Advises to trust the project in place of adding rules.
    pub(crate) fn trust_instead(&mut self, rule: RuleRef) {
        self.drop_rules();
        self.add_change(SettingsChange::TrustProject { rule });
    }

    /// The rules to add.
    pub(crate) fn added_rules(&self) -> impl Iterator<Item = &str> {
        let lists = self.changes.iter().filter_map(|change| match change {
            SettingsChange::AddAllow { rules } => Some(rules),
            SettingsChange::RemoveRule { .. }
            | SettingsChange::FixRule { .. }
            | SettingsChange::LeaveMode { .. }
            | SettingsChange::ChangeSetting { .. }
            | SettingsChange::TrustProject { .. }
            | SettingsChange::RunCommand { .. }
            | SettingsChange::FollowHook => None,
        });
        lists.flatten().map(String::as_str)
    }

    /// Whether another mode is to be used.
    pub(crate) fn leaves_mode(&self) -> bool {
        self.changes.iter().any(|change| matches!(change, SettingsChange::LeaveMode { .. }))
    }

    /// Whether [`SettingsAdvice::apply_to`] makes every change, so that a trial shows what they lead to.
    /// Rules of policy books are not removed in a trial.
    pub(crate) fn is_fully_applicable(&self, raw: &RawPolicy) -> bool {
        !self.is_final
            && self.changes.iter().all(|change| match change {
                SettingsChange::AddAllow { .. }
                | SettingsChange::LeaveMode { .. }
                | SettingsChange::TrustProject { .. } => true,
                SettingsChange::RemoveRule { rule } | SettingsChange::FixRule { rule } => {
                    raw.layers.iter().any(|layer| layer.has_rule(rule))
                }
                SettingsChange::ChangeSetting { .. }
                | SettingsChange::RunCommand { .. }
                | SettingsChange::FollowHook => false,
            })
    }

    /// Says that no user is needed after the changes: what asks by default, a mode or a hook answers then.
    pub(crate) fn spare_user(&mut self) {
        self.needs_user = false;
        self.no_rule_reason = None;
    }

    /// Says that the user has to approve the call even after the changes.
    pub(crate) fn require_user(&mut self) {
        self.needs_user = true;
        self.drop_useless_rules();
    }

    /// Whether rules are to be added.
    pub(crate) fn adds_rules(&self) -> bool {
        self.changes.iter().any(|change| matches!(change, SettingsChange::AddAllow { .. }))
    }

    /// Rules that do not spare the question are not worth adding, unless the call is denied without them.
    pub(crate) fn drop_useless_rules(&mut self) {
        if self.needs_user {
            self.drop_rules();
            for rule in self.denial_rules.clone() {
                self.add_allow(&rule);
            }
        }
    }

    /// Makes the changes that concern rules and modes.
    pub(crate) fn apply_to(&self, raw: &mut RawPolicy) {
        for change in &self.changes {
            match change {
                SettingsChange::AddAllow { rules } => {
                    let mut layer = LayerRules::new(Layer::Managed, AbsPath::root());
                    layer.allow = rules.iter().map(|rule| rule.as_str().into()).collect();
                    raw.layers.push(layer);
                }
                SettingsChange::RemoveRule { rule } | SettingsChange::FixRule { rule } => {
                    for layer in &mut raw.layers {
                        layer.remove_rule(rule);
                    }
                }
                SettingsChange::LeaveMode { .. } => raw.mode = Mode::Default,
                SettingsChange::TrustProject { .. } => raw.trust_project(),
                SettingsChange::ChangeSetting { .. }
                | SettingsChange::RunCommand { .. }
                | SettingsChange::FollowHook => {}
            }
        }
    }

    /// The advice as an imperative sentence. `raw` knows where allow rules are added and settings are changed.
    pub(crate) fn to_sentence(&self, raw: &RawPolicy) -> Option<String> {
        if self.is_final {
            return None;
        }
        let mut parts: Vec<String> = self.changes.iter().map(|change| self.describe(change, raw)).collect();
        if self.needs_user {
            parts.push(match (self.adds_rules(), &self.no_rule_reason) {
                (true, _) => "then the user has to approve each such call".to_owned(),
                (false, None) => {
                    "the user has to approve each such call, no rule is offered for it".to_owned()
                }
                (false, Some(why)) => {
                    format!("the user has to approve each such call, no rule is offered for it: {why}")
                }
            });
        }
        (!parts.is_empty()).then(|| parts.join("; and "))
    }

    /// A change of settings in words, with the file that it belongs into.
    fn describe(&self, change: &SettingsChange, raw: &RawPolicy) -> String {
        match change {
            SettingsChange::AddAllow { rules } => {
                let word = if rules.len() == 1 { "rule" } else { "rules" };
                let rules: Vec<String> = rules.iter().map(|rule| format!("`{rule}`")).collect();
                let place = match (self.managed_only, &raw.allow_place) {
                    (true, _) => {
                        " to `permissions.allow` of the managed settings, because only managed rules count"
                            .to_owned()
                    }
                    (false, Some(place)) => format!(" {place}"),
                    (false, None) => String::new(),
                };
                format!("add the allow {word} {}{place}", rules.join(", "))
            }
            SettingsChange::RemoveRule { rule } => format!("remove or narrow the {rule}"),
            SettingsChange::FixRule { rule } => format!("fix the {rule}"),
            SettingsChange::LeaveMode { mode } => match raw.setting_places.get(MODE_KEY) {
                Some(place) => format!("use another mode than {mode}: change `{MODE_KEY}` in {place}"),
                None => format!("use another mode than {mode}"),
            },
            SettingsChange::ChangeSetting { text } => text.clone(),
            SettingsChange::TrustProject { rule } => {
                format!("run `toolgate trust add`: the {rule} has no effect until you trust this project")
            }
            SettingsChange::RunCommand { command } => format!("run `{command}`"),
            SettingsChange::FollowHook => "do what the hook's message says".to_owned(),
        }
    }
}

impl RawPolicy {
    /// Makes the allow rules of the project count.
    pub(crate) fn trust_project(&mut self) {
        let rules = std::mem::take(&mut self.untrusted_allow);
        self.layers.extend(rules);
    }
}

impl LayerRules {
    /// Whether the ask or deny rule that a message refers to is one of this layer.
    fn has_rule(&self, wanted: &RuleRef) -> bool {
        let lists = [(RuleAction::Ask, &self.ask), (RuleAction::Deny, &self.deny)];
        lists.iter().any(|(action, list)| list.iter().any(|rule| self.reference(*action, rule) == *wanted))
    }

    /// Removes the ask or deny rule that a message refers to, if it is one of this layer.
    fn remove_rule(&mut self, removed: &RuleRef) {
        for action in [RuleAction::Ask, RuleAction::Deny] {
            let layer = self.clone();
            let list = match action {
                RuleAction::Ask => &mut self.ask,
                RuleAction::Deny | RuleAction::Allow => &mut self.deny,
            };
            list.retain(|rule| layer.reference(action, rule) != *removed);
        }
    }
}
