//! The decision of the model, as the manual describes it.

use super::book;
use super::command::{GeneratedCommandEffect, GeneratedSimpleCommand, to_absolute};
use super::generated_call::{GeneratedCall, GeneratedEffect, GeneratedSettings, GeneratedUrl};
use super::rule::{ReferenceRule, ReferenceRuleEntry, is_private, matches_labels};
use super::simulated_path::{CWD, EXTRA_ROOT, HOME, SimulatedPath, is_in, resolve_path};
use toolgate_policy::{Layer, RuleAction};
use toolgate_proto::Mode;

/// An objection to a call, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReferenceObjection {
    /// No objection.
    Nothing,
    /// No rule allows it.
    DefaultAsk,
    /// A rule or a hook asks, or the path is one that always asks.
    ExplicitAsk,
    /// A rule, a hook or a setting denies it.
    Denied,
}

use ReferenceObjection::{DefaultAsk, Denied, ExplicitAsk, Nothing};

/// The verdict of the model.
pub(super) fn judge(settings: &GeneratedSettings, call: &GeneratedCall) -> RuleAction {
    let Some(evaluator) = ReferenceEvaluator::new(settings, call) else { return RuleAction::Deny };
    let objection = evaluator.judge_call();
    let agreed = call.opinions.contains(&RuleAction::Allow);
    match (evaluator.mode, objection) {
        (Mode::Deny, _) | (_, Denied) => RuleAction::Deny,
        (_, Nothing) => RuleAction::Allow,
        (Mode::Bypass, DefaultAsk) => RuleAction::Allow,
        (_, DefaultAsk) if agreed => RuleAction::Allow,
        (Mode::DontAsk, DefaultAsk | ExplicitAsk) => RuleAction::Deny,
        (_, DefaultAsk | ExplicitAsk) => RuleAction::Ask,
    }
}

/// One call under one policy.
struct ReferenceEvaluator<'s> {
    /// The settings, before they are compiled.
    settings: &'s GeneratedSettings,
    /// The call that is judged.
    call: &'s GeneratedCall,
    /// The mode that applies, which is not `bypass` if that is disabled.
    mode: Mode,
    /// The rules that apply.
    rules: Vec<ReferenceRule>,
    /// A rule or the book allows the whole tool.
    granted: bool,
}

/// On what basis a path is accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AccessBasis {
    /// By the tool itself, or by a redirect.
    Direct,
    /// By a command that a rule allows; `true` if the rule is exactly the command.
    AllowedByRule(bool),
    /// By a command that needs no rule: a read-only one, or an edit in the mode `acceptEdits`.
    AllowedByDefault,
    /// By a command that asks anyway: only what restricts its effects matters.
    NotAllowed,
}

impl<'s> ReferenceEvaluator<'s> {
    /// Parses every rule. `None` if a deny or ask rule is malformed: then every call is denied.
    fn new(settings: &'s GeneratedSettings, call: &'s GeneratedCall) -> Option<Self> {
        let mut rules = Vec::new();
        for layer in &settings.layers {
            let lists = [
                (RuleAction::Allow, &layer.allow),
                (RuleAction::Ask, &layer.ask),
                (RuleAction::Deny, &layer.deny),
            ];
            for (action, list) in lists {
                for text in list {
                    match (ReferenceRule::parse(text, action, layer.anchor()), action) {
                        (ReferenceRuleEntry::Malformed, RuleAction::Ask | RuleAction::Deny) => return None,
                        (ReferenceRuleEntry::Malformed, RuleAction::Allow)
                        | (ReferenceRuleEntry::NeverMatches, _) => {}
                        (ReferenceRuleEntry::Rule(rule), RuleAction::Allow) => {
                            let managed = matches!(layer.layer, Layer::Managed | Layer::Default);
                            if layer.trusted && (managed || !settings.managed_only) {
                                rules.push(rule);
                            }
                        }
                        (ReferenceRuleEntry::Rule(rule), RuleAction::Ask | RuleAction::Deny) => {
                            rules.push(rule)
                        }
                    }
                }
            }
        }
        let bypass_is_off = settings.no_bypass && settings.mode == Mode::Bypass;
        let mode = if bypass_is_off { Mode::Default } else { settings.mode };
        let mut evaluator = Self { settings, call, mode, rules, granted: false };
        evaluator.granted = evaluator.has_rule(RuleAction::Allow, |rule| rule.matches_tool(call))
            || matches!(evaluator.book_action(), Some((RuleAction::Allow, _)));
        Some(evaluator)
    }

    /// Searches all rules linearly: the model prefers clarity to speed.
    fn has_rule(&self, action: RuleAction, matches: impl Fn(&ReferenceRule) -> bool) -> bool {
        self.rules.iter().any(|rule| rule.action == action && matches(rule))
    }

    /// The objection of the deny and ask rules that match.
    fn rule_objection(&self, matches: impl Fn(&ReferenceRule) -> bool) -> ReferenceObjection {
        if self.has_rule(RuleAction::Deny, &matches) {
            Denied
        } else if self.has_rule(RuleAction::Ask, &matches) {
            ExplicitAsk
        } else {
            Nothing
        }
    }

    /// Evaluates the policy book; `None` if the settings have none.
    fn book_action(&self) -> Option<(RuleAction, bool)> {
        book::evaluate_book(self.settings.book.as_ref()?, self.call)
    }

    /// Takes the strongest objection of rules, settings, hooks, book and effect.
    fn judge_call(&self) -> ReferenceObjection {
        let call = self.call;
        let mut objection = self.rule_objection(|rule| rule.matches_tool(call) || rule.matches_field(call));
        let disabled = self.settings.disabled.iter().any(|name| call.restricted_names().contains(name));
        if disabled {
            objection = Denied;
        }
        for opinion in &call.opinions {
            objection = objection.max(match opinion {
                RuleAction::Allow => Nothing,
                RuleAction::Ask => ExplicitAsk,
                RuleAction::Deny => Denied,
            });
        }
        objection = objection.max(match self.book_action() {
            None | Some((RuleAction::Allow, _)) => Nothing,
            Some((RuleAction::Ask, true)) => ExplicitAsk,
            Some((RuleAction::Ask, false)) => DefaultAsk,
            Some((RuleAction::Deny, _)) => Denied,
        });
        if call.needs_user {
            objection = objection.max(ExplicitAsk);
        }
        objection.max(self.judge_effect())
    }

    /// Judges the effect of the call; rules for the whole tool enter only through `granted`.
    fn judge_effect(&self) -> ReferenceObjection {
        let plan = if self.mode == Mode::Plan { ExplicitAsk } else { Nothing };
        let needs = |allowed: bool| if allowed { Nothing } else { DefaultAsk };
        match &self.call.effect {
            GeneratedEffect::Read(path) | GeneratedEffect::ReadTree(path) => {
                self.judge_read(&resolve_path(path), AccessBasis::Direct)
            }
            GeneratedEffect::Write(path) => self.judge_write(&resolve_path(path), AccessBasis::Direct),
            GeneratedEffect::Exec(line) => {
                let mut objection = line
                    .simple_commands()
                    .iter()
                    .map(|simple| self.judge_command(simple))
                    .max()
                    .unwrap_or(Nothing);
                if line.items.iter().any(|(item, _)| item.has_command_substitution()) {
                    objection = objection.max(self.judge_command(&GeneratedSimpleCommand::of(&["echo"])));
                }
                objection
            }
            GeneratedEffect::Fetch(address) => self.judge_fetch(address),
            GeneratedEffect::WebSearch(_) => {
                needs(self.granted || self.has_rule(RuleAction::Allow, |rule| rule.is_bare("WebSearch")))
            }
            GeneratedEffect::Delegate(agent) => {
                let allowed =
                    self.granted || self.has_rule(RuleAction::Allow, |rule| rule.matches_agent(agent));
                self.rule_objection(|rule| rule.matches_agent(agent)).max(needs(allowed))
            }
            GeneratedEffect::Skill(name, args) => {
                let matches = |rule: &ReferenceRule| rule.matches_skill(name, args.as_deref());
                self.rule_objection(matches)
                    .max(needs(self.granted || self.has_rule(RuleAction::Allow, matches)))
            }
            GeneratedEffect::Remote { path, .. } => {
                let spelled =
                    path.as_ref().map_or(Nothing, |path| self.judge_remote_path(&to_absolute(path)));
                plan.max(spelled).max(needs(self.granted))
            }
            GeneratedEffect::State => Nothing,
            GeneratedEffect::Opaque => plan.max(needs(self.granted)),
        }
    }

    /// An MCP server may see another file system: only the spelling can be judged, and the server may read and write.
    fn judge_remote_path(&self, path: &str) -> ReferenceObjection {
        let spelled = resolve_path(path).spelled;
        let rules = self.rule_objection(|rule| {
            rule.matches_path("Read", &spelled) || rule.matches_path("Edit", &spelled)
        });
        rules.max(if is_protected(&spelled) { ExplicitAsk } else { Nothing })
    }

    /// Whether allow rules match both the path as spelled and the resolved path.
    fn is_path_allowed(
        &self,
        names: &[&str],
        path: &SimulatedPath,
        counts: impl Fn(&ReferenceRule, &str) -> bool,
    ) -> bool {
        [&path.spelled, &path.real].into_iter().all(|form| {
            self.has_rule(RuleAction::Allow, |rule| {
                names.iter().any(|name| rule.matches_path(name, form) && counts(rule, name))
            })
        })
    }

    /// Judges a read. Restricting rules see every form of the path; an allow rule must match the spelled and the real
    /// one.
    fn judge_read(&self, path: &SimulatedPath, by: AccessBasis) -> ReferenceObjection {
        let by_rules =
            self.rule_objection(|rule| path_forms(path).iter().any(|form| rule.matches_path("Read", form)));
        let in_proc = path_forms(path).iter().any(|form| is_in(form, "/proc"));
        let mut objection = by_rules.max(if in_proc { ExplicitAsk } else { Nothing });
        if by == AccessBasis::NotAllowed {
            return objection;
        }
        let allowed = self.is_path_allowed(&["Read", "Edit"], path, |_, _| true)
            || (by == AccessBasis::Direct && self.granted);
        if !is_in_workspace(path) && !allowed {
            objection = objection.max(DefaultAsk);
        }
        objection.max(self.judge_secret(path, by, &["Read", "Edit"]))
    }

    /// Judges a write. A rule against reading also restricts writing, and a hard-linked file asks, because its other
    /// names are unknown.
    fn judge_write(&self, path: &SimulatedPath, by: AccessBasis) -> ReferenceObjection {
        let matches = |rule: &ReferenceRule, form: &String| {
            rule.matches_path("Read", form) || rule.matches_path("Edit", form)
        };
        let mut objection =
            self.rule_objection(|rule| path_forms(path).iter().any(|form| matches(rule, form)));
        if path_forms(path).iter().any(|form| is_protected(form)) {
            objection = objection.max(ExplicitAsk);
        }
        if self.mode == Mode::Plan {
            objection = objection.max(ExplicitAsk);
        }
        if by == AccessBasis::NotAllowed {
            return objection;
        }
        if path.shared {
            objection = objection.max(DefaultAsk);
        }
        let allowed_by_rule = matches!(by, AccessBasis::AllowedByRule(_)) && is_in_workspace(path);
        let allowed_by_mode = self.mode == Mode::AcceptEdits && is_in_workspace(path);
        let granted = by == AccessBasis::Direct
            && self.granted
            && (is_in_workspace(path) || !matches!(self.call.effect, GeneratedEffect::Exec(_)));
        if !(allowed_by_rule
            || allowed_by_mode
            || granted
            || self.is_path_allowed(&["Edit"], path, |_, _| true))
        {
            objection = objection.max(DefaultAsk);
        }
        objection.max(self.judge_secret(path, by, &["Edit"]))
    }

    /// A secret asks unless a rule names it.
    fn judge_secret(&self, path: &SimulatedPath, by: AccessBasis, names: &[&str]) -> ReferenceObjection {
        let secret = path_forms(path).iter().any(|form| form.to_lowercase().ends_with("/.env"));
        let names_secret = |rule: &ReferenceRule, name: &str| {
            rule.pattern(name).is_some_and(|pattern| pattern.names_secret())
        };
        if !secret
            || by == AccessBasis::AllowedByRule(true)
            || self.is_path_allowed(names, path, names_secret)
        {
            Nothing
        } else {
            DefaultAsk
        }
    }

    /// Judges one simple command with its effects and redirects. How the command itself is allowed decides what its
    /// effects still need.
    fn judge_command(&self, simple: &GeneratedSimpleCommand) -> ReferenceObjection {
        let spellings = simple.spellings();
        let by_rules = self.rule_objection(|rule| spellings.iter().any(|text| rule.matches_command(text)));
        let bare = simple.bare_text();
        let allowed_by_rule =
            self.granted || self.has_rule(RuleAction::Allow, |rule| rule.matches_command(&bare));
        let exactly = self.has_rule(RuleAction::Allow, |rule| rule.is_command(&bare));
        let is_free_reader = simple.is_read_only() && self.settings.free_readers;
        let is_free_edit = simple.edits_files() && self.mode == Mode::AcceptEdits;
        let by = if allowed_by_rule && !simple.has_environment_override() {
            AccessBasis::AllowedByRule(exactly)
        } else if (is_free_reader || is_free_edit && !simple.has_unknown_variable())
            && !simple.has_environment_override()
        {
            AccessBasis::AllowedByDefault
        } else {
            AccessBasis::NotAllowed
        };
        let mut objection = by_rules.max(if by == AccessBasis::NotAllowed { DefaultAsk } else { Nothing });
        // What the program does with this variable is unknown: a rule that restricts may match it.
        if simple.has_environment_override()
            && self.rule_objection(|rule| rule.may_match_program(simple.program())) != Nothing
        {
            objection = objection.max(ExplicitAsk);
        }
        if self.mode == Mode::Plan
            && (simple.has_environment_override() || simple.has_unknown_variable() || !simple.is_read_only())
        {
            objection = objection.max(ExplicitAsk);
        }
        for effect in simple.effects() {
            objection = objection.max(match effect {
                GeneratedCommandEffect::Reads(path) => self.judge_read(&resolve_path(&path), by),
                GeneratedCommandEffect::Changes(path) => self.judge_write(&resolve_path(&path), by),
                GeneratedCommandEffect::Removes(path) => {
                    let path = resolve_path(&path);
                    let contains_root =
                        |form: &String| [CWD, EXTRA_ROOT, HOME].iter().any(|root| is_in(root, form));
                    let removes_root =
                        if path_forms(&path).iter().any(contains_root) { ExplicitAsk } else { Nothing };
                    self.judge_write(&path, by).max(removes_root)
                }
                GeneratedCommandEffect::Fetches(address) => self.judge_command_fetch(&address),
            });
        }
        if let Some(path) = &simple.output
            && path != "/dev/null"
        {
            objection =
                objection.max(self.judge_write(&resolve_path(&to_absolute(path)), AccessBasis::Direct));
        }
        if let Some(path) = &simple.input {
            objection = objection
                .max(self.judge_read(&resolve_path(&to_absolute(path)), AccessBasis::AllowedByDefault));
        }
        objection
    }

    /// The objection of the rules and the blocked list to a host.
    fn judge_host(&self, address: &GeneratedUrl) -> ReferenceObjection {
        let blocked = self.settings.blocked_hosts.iter().any(|host| matches_labels(host, address.host));
        self.rule_objection(|rule| rule.matches_host(address)).max(if blocked { Denied } else { Nothing })
    }

    /// A fetch by the fetch tool.
    fn judge_fetch(&self, address: &GeneratedUrl) -> ReferenceObjection {
        let named = self.has_rule(RuleAction::Allow, |rule| rule.is_host(address));
        let private = if is_private(address.host) && !named { Denied } else { Nothing };
        let is_default_port = matches!(address.effective_port(), 80 | 443);
        let approved = self.settings.approved_hosts.iter().any(|host| matches_labels(host, address.host));
        let allowed = self.has_rule(RuleAction::Allow, |rule| rule.matches_host(address))
            || (is_default_port && (approved || self.granted))
            || (self.settings.approve_https && address.secure && address.effective_port() == 443);
        self.judge_host(address).max(private).max(if allowed { Nothing } else { DefaultAsk })
    }

    /// A fetch by a command: a rule for the command covers it, except for the metadata service.
    fn judge_command_fetch(&self, address: &GeneratedUrl) -> ReferenceObjection {
        self.judge_host(address).max(if address.host == "169.254.169.254" { ExplicitAsk } else { Nothing })
    }
}

/// Every path that a deny or ask rule may match.
fn path_forms(path: &SimulatedPath) -> Vec<String> {
    [path.spelled.clone(), path.real.clone()].into_iter().chain(path.links.iter().cloned()).collect()
}

/// Tells whether the resolved path is below a root; a symlink that leaves the workspace does not count.
fn is_in_workspace(path: &SimulatedPath) -> bool {
    [CWD, EXTRA_ROOT].iter().any(|root| is_in(&path.real, root))
}

/// Whether a path is protected, among those that are generated.
fn is_protected(path: &str) -> bool {
    let names: Vec<String> = path.split('/').map(str::to_lowercase).collect();
    let anywhere = [".git", ".claude", ".vscode", ".bashrc"];
    names.iter().any(|name| anywhere.contains(&name.as_str())) || is_in(path, "/etc") || is_in(path, "/proc")
}
