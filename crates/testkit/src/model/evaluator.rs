//! The decision law, as the manual has it.

use super::book;
use super::command::{GeneratedCommandEffect, GeneratedSimpleCommand, to_absolute};
use super::rule::{ReferenceRule, ReferenceRuleEntry, is_private, matches_labels};
use super::scenario::{
    CWD, EXTRA_ROOT, GeneratedCall, GeneratedEffect, GeneratedSettings, GeneratedUrl, HOME, SimulatedPath,
    is_in, resolve_path,
};
use toolgate_policy::{Layer, RuleAction};
use toolgate_proto::Mode;

/// How strongly something stands against a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReferenceObjection {
    /// Not at all.
    Nothing,
    /// Nobody said yes.
    DefaultAsk,
    /// Somebody wants to be asked, or the place is one that always asks.
    ExplicitAsk,
    /// No.
    Denied,
}

use ReferenceObjection::{DefaultAsk, Denied, ExplicitAsk, Nothing};

/// The answer to a call.
pub(super) fn judge(written: &GeneratedSettings, call: &GeneratedCall) -> RuleAction {
    let Some(law) = ReferenceEvaluator::new(written, call) else { return RuleAction::Deny };
    let against = law.judge_call();
    let agreed = call.opinions.contains(&RuleAction::Allow);
    match (law.mode, against) {
        (Mode::Deny, _) | (_, Denied) => RuleAction::Deny,
        (_, Nothing) => RuleAction::Allow,
        (Mode::Bypass, DefaultAsk) => RuleAction::Allow,
        (_, DefaultAsk) if agreed => RuleAction::Allow,
        (Mode::DontAsk, DefaultAsk | ExplicitAsk) => RuleAction::Deny,
        (_, DefaultAsk | ExplicitAsk) => RuleAction::Ask,
    }
}

struct ReferenceEvaluator<'s> {
    written: &'s GeneratedSettings,
    call: &'s GeneratedCall,
    mode: Mode,
    rules: Vec<ReferenceRule>,
    /// A rule or the book allows the whole tool.
    granted: bool,
}

/// Who touches a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AccessBasis {
    /// The tool, or a redirect.
    Direct,
    /// A command that a rule allows; `true`: by name and word for word.
    AllowedByRule(bool),
    /// A command that is free because of what it is.
    AllowedByDefault,
    /// A command that nobody allowed: its effects matter only where they stand against it.
    NotAllowed,
}

impl<'s> ReferenceEvaluator<'s> {
    /// Reads every rule. A rule that would hold something back and cannot be read leaves no law at all.
    fn new(written: &'s GeneratedSettings, call: &'s GeneratedCall) -> Option<Self> {
        let mut rules = Vec::new();
        for layer in &written.layers {
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
                            if layer.trusted && (managed || !written.managed_only) {
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
        let bypass_is_off = written.no_bypass && written.mode == Mode::Bypass;
        let mode = if bypass_is_off { Mode::Default } else { written.mode };
        let mut law = Self { written, call, mode, rules, granted: false };
        law.granted = law.has_rule(RuleAction::Allow, |rule| rule.matches_tool(call))
            || matches!(law.book_action(), Some((RuleAction::Allow, _)));
        Some(law)
    }

    fn has_rule(&self, action: RuleAction, fits: impl Fn(&ReferenceRule) -> bool) -> bool {
        self.rules.iter().any(|rule| rule.action == action && fits(rule))
    }

    /// What the deny and ask rules say together.
    fn rule_objection(&self, fits: impl Fn(&ReferenceRule) -> bool) -> ReferenceObjection {
        if self.has_rule(RuleAction::Deny, &fits) {
            Denied
        } else if self.has_rule(RuleAction::Ask, &fits) {
            ExplicitAsk
        } else {
            Nothing
        }
    }

    fn book_action(&self) -> Option<(RuleAction, bool)> {
        book::evaluate_book(self.written.book.as_ref()?, self.call)
    }

    fn judge_call(&self) -> ReferenceObjection {
        let call = self.call;
        let mut against = self.rule_objection(|rule| rule.matches_tool(call) || rule.matches_field(call));
        let off = self.written.disabled.iter().any(|name| *name == call.tool || call.also.contains(name));
        if off {
            against = Denied;
        }
        for opinion in &call.opinions {
            against = against.max(match opinion {
                RuleAction::Allow => Nothing,
                RuleAction::Ask => ExplicitAsk,
                RuleAction::Deny => Denied,
            });
        }
        against = against.max(match self.book_action() {
            None | Some((RuleAction::Allow, _)) => Nothing,
            Some((RuleAction::Ask, true)) => ExplicitAsk,
            Some((RuleAction::Ask, false)) => DefaultAsk,
            Some((RuleAction::Deny, _)) => Denied,
        });
        if call.needs_person {
            against = against.max(ExplicitAsk);
        }
        against.max(self.judge_effect())
    }

    fn judge_effect(&self) -> ReferenceObjection {
        let plan = if self.mode == Mode::Plan { ExplicitAsk } else { Nothing };
        let needs = |allowed: bool| if allowed { Nothing } else { DefaultAsk };
        match &self.call.effect {
            GeneratedEffect::Read(path) | GeneratedEffect::ReadTree(path) => {
                self.judge_read(&resolve_path(path), AccessBasis::Direct)
            }
            GeneratedEffect::Write(path) => self.judge_write(&resolve_path(path), AccessBasis::Direct),
            GeneratedEffect::Exec(line) => {
                let mut against = line
                    .simple_commands()
                    .iter()
                    .map(|simple| self.judge_command(simple))
                    .max()
                    .unwrap_or(Nothing);
                if line.items.iter().any(|(item, _)| item.has_command_substitution()) {
                    against = against.max(self.judge_command(&GeneratedSimpleCommand::of(&["echo"])));
                }
                against
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
                let fits = |rule: &ReferenceRule| rule.matches_skill(name, args.as_deref());
                self.rule_objection(fits).max(needs(self.granted || self.has_rule(RuleAction::Allow, fits)))
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

    /// Another server sees another file system: only the spelling can be judged, and it may read and write.
    fn judge_remote_path(&self, path: &str) -> ReferenceObjection {
        let spelled = resolve_path(path).spelled;
        let rules = self.rule_objection(|rule| {
            rule.matches_path("Read", &spelled) || rule.matches_path("Edit", &spelled)
        });
        rules.max(if is_protected(&spelled) { ExplicitAsk } else { Nothing })
    }

    /// The path as spelled and where it leads must both be granted.
    fn is_path_allowed(
        &self,
        names: &[&str],
        at: &SimulatedPath,
        counts: impl Fn(&ReferenceRule, &str) -> bool,
    ) -> bool {
        [&at.spelled, &at.real].into_iter().all(|form| {
            self.has_rule(RuleAction::Allow, |rule| {
                names.iter().any(|name| rule.matches_path(name, form) && counts(rule, name))
            })
        })
    }

    fn judge_read(&self, at: &SimulatedPath, by: AccessBasis) -> ReferenceObjection {
        let held =
            self.rule_objection(|rule| path_forms(at).iter().any(|form| rule.matches_path("Read", form)));
        let kernel = path_forms(at).iter().any(|form| is_in(form, "/proc"));
        let mut against = held.max(if kernel { ExplicitAsk } else { Nothing });
        if by == AccessBasis::NotAllowed {
            return against;
        }
        let allowed = self.is_path_allowed(&["Read", "Edit"], at, |_, _| true)
            || (by == AccessBasis::Direct && self.granted);
        if !is_in_workspace(at) && !allowed {
            against = against.max(DefaultAsk);
        }
        against.max(self.judge_secret(at, by, &["Read", "Edit"]))
    }

    fn judge_write(&self, at: &SimulatedPath, by: AccessBasis) -> ReferenceObjection {
        let fits = |rule: &ReferenceRule, form: &String| {
            rule.matches_path("Read", form) || rule.matches_path("Edit", form)
        };
        let mut against = self.rule_objection(|rule| path_forms(at).iter().any(|form| fits(rule, form)));
        if path_forms(at).iter().any(|form| is_protected(form)) {
            against = against.max(ExplicitAsk);
        }
        if self.mode == Mode::Plan {
            against = against.max(ExplicitAsk);
        }
        if by == AccessBasis::NotAllowed {
            return against;
        }
        if at.shared {
            against = against.max(DefaultAsk);
        }
        let ruled = matches!(by, AccessBasis::AllowedByRule(_)) && is_in_workspace(at);
        let freed = self.mode == Mode::AcceptEdits && is_in_workspace(at);
        let granted = by == AccessBasis::Direct
            && self.granted
            && !matches!(self.call.effect, GeneratedEffect::Exec(_));
        if !(ruled || freed || granted || self.is_path_allowed(&["Edit"], at, |_, _| true)) {
            against = against.max(DefaultAsk);
        }
        against.max(self.judge_secret(at, by, &["Edit"]))
    }

    /// A secret asks unless a rule speaks of it by name.
    fn judge_secret(&self, at: &SimulatedPath, by: AccessBasis, names: &[&str]) -> ReferenceObjection {
        let secret = path_forms(at).iter().any(|form| form.to_lowercase().ends_with("/.env"));
        let frank = |rule: &ReferenceRule, name: &str| {
            rule.pattern(name).is_some_and(|pattern| pattern.names_secret())
        };
        if !secret || by == AccessBasis::AllowedByRule(true) || self.is_path_allowed(names, at, frank) {
            Nothing
        } else {
            DefaultAsk
        }
    }

    fn judge_command(&self, simple: &GeneratedSimpleCommand) -> ReferenceObjection {
        let spellings = simple.spellings();
        let held = self.rule_objection(|rule| spellings.iter().any(|text| rule.matches_command(text)));
        let bare = simple.bare_text();
        let ruled = self.granted || self.has_rule(RuleAction::Allow, |rule| rule.matches_command(&bare));
        let exactly = self.has_rule(RuleAction::Allow, |rule| rule.is_command(&bare));
        let free = simple.is_read_only() && self.written.free_readers;
        let edits = simple.edits_files() && self.mode == Mode::AcceptEdits;
        let by = if ruled && !simple.has_environment_override() {
            AccessBasis::AllowedByRule(exactly)
        } else if (free || edits && !simple.has_unknown_variable()) && !simple.has_environment_override() {
            AccessBasis::AllowedByDefault
        } else {
            AccessBasis::NotAllowed
        };
        let mut against = held.max(if by == AccessBasis::NotAllowed { DefaultAsk } else { Nothing });
        // What a variable makes of the program is not known: it may be what a rule holds back.
        if simple.has_environment_override()
            && self.rule_objection(|rule| rule.may_match_program(simple.program())) != Nothing
        {
            against = against.max(ExplicitAsk);
        }
        if self.mode == Mode::Plan
            && (simple.has_environment_override() || simple.has_unknown_variable() || !simple.is_read_only())
        {
            against = against.max(ExplicitAsk);
        }
        for touch in simple.effects() {
            against = against.max(match touch {
                GeneratedCommandEffect::Reads(path) => self.judge_read(&resolve_path(&path), by),
                GeneratedCommandEffect::Changes(path) => self.judge_write(&resolve_path(&path), by),
                GeneratedCommandEffect::Removes(path) => {
                    let at = resolve_path(&path);
                    let holds = |form: &String| [CWD, EXTRA_ROOT, HOME].iter().any(|held| is_in(held, form));
                    let grave = if path_forms(&at).iter().any(holds) { ExplicitAsk } else { Nothing };
                    self.judge_write(&at, by).max(grave)
                }
                GeneratedCommandEffect::Fetches(address) => self.judge_command_fetch(&address),
            });
        }
        if let Some(path) = &simple.output
            && path != "/dev/null"
        {
            against = against.max(self.judge_write(&resolve_path(&to_absolute(path)), AccessBasis::Direct));
        }
        if let Some(path) = &simple.input {
            against = against
                .max(self.judge_read(&resolve_path(&to_absolute(path)), AccessBasis::AllowedByDefault));
        }
        against
    }

    /// A host that holds nothing back: neither a rule nor the blocked list speaks of it.
    fn judge_host(&self, address: &GeneratedUrl) -> ReferenceObjection {
        let blocked = self.written.blocked_hosts.iter().any(|host| matches_labels(host, address.host));
        self.rule_objection(|rule| rule.matches_host(address)).max(if blocked { Denied } else { Nothing })
    }

    /// A fetch by the tool for it.
    fn judge_fetch(&self, address: &GeneratedUrl) -> ReferenceObjection {
        let named = self.has_rule(RuleAction::Allow, |rule| rule.is_host(address.host));
        let private = if is_private(address.host) && !named { Denied } else { Nothing };
        let usual = matches!(address.effective_port(), 80 | 443);
        let approved = self.written.approved_hosts.iter().any(|host| matches_labels(host, address.host));
        let allowed = self.has_rule(RuleAction::Allow, |rule| rule.matches_host(address))
            || (usual && (approved || self.granted))
            || (self.written.approve_https && address.secure && address.effective_port() == 443);
        self.judge_host(address).max(private).max(if allowed { Nothing } else { DefaultAsk })
    }

    /// A fetch by a command: a rule for the command covers it, but for the service that hands out credentials.
    fn judge_command_fetch(&self, address: &GeneratedUrl) -> ReferenceObjection {
        self.judge_host(address).max(if address.host == "169.254.169.254" { ExplicitAsk } else { Nothing })
    }
}

/// Every path that a rule which holds back may mean.
fn path_forms(at: &SimulatedPath) -> Vec<String> {
    [at.spelled.clone(), at.real.clone()].into_iter().chain(at.links.iter().cloned()).collect()
}

fn is_in_workspace(at: &SimulatedPath) -> bool {
    [CWD, EXTRA_ROOT].iter().any(|root| is_in(&at.real, root))
}

/// Places that are never pre-approved for writing, as far as scenes use them.
fn is_protected(path: &str) -> bool {
    let names: Vec<String> = path.split('/').map(str::to_lowercase).collect();
    let anywhere = [".git", ".claude", ".vscode", ".bashrc"];
    names.iter().any(|name| anywhere.contains(&name.as_str())) || is_in(path, "/etc") || is_in(path, "/proc")
}
