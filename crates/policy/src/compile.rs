//! From what people wrote to what can be asked quickly.

use crate::book::Books;
use crate::decide::Policy;
use crate::lint;
use crate::protect::{Guarded, Touch};
use crate::raw::{Action, Layer, Problem, RawPolicy, Switches, Weight};
use crate::rule::domain::{DomainIndex, DomainPattern};
use crate::rule::path::{PathIndex, PathUse};
use crate::rule::{ActionIndex, Rule};
use crate::url::FetchSettings;
use std::collections::HashSet;
use std::sync::Arc;
use toolgate_proto::{AbsPath, Code, Mode, Reason, RuleRef};
use url::Host;

/// Everything a policy knows but its mode.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// Every rule that can be matched, strongest layer first; indexes speak of them by position.
    pub(crate) references: Vec<RuleRef>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) deny: ActionIndex,
    pub(crate) ask: ActionIndex,
    pub(crate) allow: ActionIndex,
    /// Allow rules whose own pattern speaks of a sensitive name: only these answer the question about it.
    pub(crate) frank_reads: PathIndex,
    pub(crate) frank_edits: PathIndex,
    pub(crate) books: Books,
    pub(crate) fetch: Fetch,
    pub(crate) guarded: Guarded,
    pub(crate) managed: Switches,
    pub(crate) disabled: HashSet<String>,
    pub(crate) auto_read_only: bool,
    pub(crate) block_reads_outside: bool,
    pub(crate) block_writes_outside: bool,
    pub(crate) allow_unsandboxed: bool,
    /// Set when a rule that would deny or ask cannot be read.
    pub(crate) unusable: Option<Reason>,
}

/// Fetch settings, compiled.
#[derive(Debug, Default)]
pub(crate) struct Fetch {
    pub(crate) allowed: DomainIndex,
    pub(crate) blocked: DomainIndex,
    pub(crate) auto_approve_https: bool,
    pub(crate) private: HashSet<Host<String>>,
}

/// Compiles what people wrote.
pub(crate) fn compile(mut raw: RawPolicy) -> (Policy, Vec<Problem>) {
    let mut problems = Vec::new();
    raw.layers.sort_by_key(|layer| layer.layer);
    let guarded = Guarded::new(&raw.protected_paths, &raw.protected_names, &raw.sensitive);
    let count = raw.layers.iter().map(|layer| layer.deny.len() + layer.ask.len() + layer.allow.len()).sum();
    let mut compiled = Compiled {
        references: Vec::with_capacity(count),
        rules: Vec::with_capacity(count),
        deny: ActionIndex::default(),
        ask: ActionIndex::default(),
        allow: ActionIndex::default(),
        frank_reads: PathIndex::default(),
        frank_edits: PathIndex::default(),
        books: Books::compile(&raw.books, &mut problems),
        fetch: Fetch::compile(&raw.fetch, &mut problems),
        guarded,
        disabled: raw.managed.disabled_tools.iter().cloned().collect(),
        managed: raw.managed.clone(),
        auto_read_only: raw.auto_allow_read_only_commands,
        block_reads_outside: raw.block_reads_outside,
        block_writes_outside: raw.block_writes_outside,
        allow_unsandboxed: raw.allow_unsandboxed,
        unusable: None,
    };
    for layer in &raw.layers {
        for (action, rules) in
            [(Action::Deny, &layer.deny), (Action::Ask, &layer.ask), (Action::Allow, &layer.allow)]
        {
            for rule in rules {
                let reference = layer.reference(action, rule);
                if let Some(why) = ignored(action, layer.layer, layer.trusted, &raw.managed) {
                    problems.push(lint::note(reference, why.0, why.1));
                    continue;
                }
                match Rule::parse(&rule.text, action, &layer.anchor) {
                    Ok(Rule::Never(message, fix)) => {
                        problems.push(lint::warning(reference, message, fix));
                    }
                    Ok(rule) => compiled.add(action, rule, reference),
                    Err(bad) => {
                        let weight = if action == Action::Allow { Weight::Warning } else { Weight::Fatal };
                        problems.push(Problem {
                            rule: reference,
                            weight,
                            message: bad.message,
                            fix: bad.fix,
                        });
                    }
                }
            }
        }
    }
    lint::look_over(&compiled, &mut problems);
    let mut mode = raw.mode;
    if mode == Mode::Bypass && raw.managed.disable_bypass_permissions_mode {
        mode = Mode::Default;
        problems.push(lint::warning(
            RuleRef {
                text: "mode bypass".to_owned(),
                action: "allow".to_owned(),
                layer: Layer::Managed.to_string(),
                file: None,
                line: None,
            },
            "mode bypass is switched off here",
            "mode default is used",
        ));
    }
    compiled.unusable = problems.iter().find(|problem| problem.weight == Weight::Fatal).map(|problem| {
        let text = format!("a rule that would deny or ask cannot be read: {}", problem.message);
        Reason::new(Code::UnusablePolicy, text).by(problem.rule.clone())
    });
    (Policy::of(Arc::new(compiled), mode), problems)
}

/// Why a rule does not count although it can be read.
fn ignored(
    action: Action,
    layer: Layer,
    trusted: bool,
    managed: &Switches,
) -> Option<(&'static str, &'static str)> {
    if action != Action::Allow {
        return None;
    }
    if !trusted {
        return Some((
            "allow rules of a project count only once the project is trusted",
            "trust the project",
        ));
    }
    let locked =
        managed.allow_managed_permission_rules_only && !matches!(layer, Layer::Managed | Layer::Default);
    locked.then_some(("only managed allow rules count here", "ask whoever manages this machine"))
}

impl Compiled {
    fn add(&mut self, action: Action, rule: Rule, reference: RuleRef) {
        let Ok(id) = u32::try_from(self.references.len()) else { return };
        match action {
            Action::Deny => self.deny.add(id, &rule),
            Action::Ask => self.ask.add(id, &rule),
            Action::Allow => {
                self.allow.add(id, &rule);
                if let Rule::Path(pattern) = &rule
                    && self.guarded.sensitive(&pattern.spoken, Touch::Write).is_some()
                {
                    match pattern.usage {
                        PathUse::Read => self.frank_reads.add(id, pattern),
                        PathUse::Edit => self.frank_edits.add(id, pattern),
                    }
                }
            }
        }
        self.references.push(reference);
        self.rules.push(rule);
    }

    pub(crate) fn reference(&self, id: u32) -> Option<&RuleRef> {
        self.references.get(usize::try_from(id).ok()?)
    }

    pub(crate) fn rule(&self, id: u32) -> Option<&Rule> {
        self.rules.get(usize::try_from(id).ok()?)
    }
}

impl Fetch {
    fn compile(settings: &FetchSettings, problems: &mut Vec<Problem>) -> Self {
        let mut out = Self { auto_approve_https: settings.auto_approve_https, ..Self::default() };
        let mut read = |hosts: &[String], action: Action, into: &mut DomainIndex| {
            for host in hosts {
                match DomainPattern::parse(&format!("domain:{host}")) {
                    Ok(pattern) => into.add(0, &pattern),
                    Err(bad) => {
                        let weight = if action == Action::Allow { Weight::Warning } else { Weight::Fatal };
                        problems.push(Problem {
                            rule: list_entry(host, action),
                            weight,
                            message: bad.message,
                            fix: bad.fix,
                        });
                    }
                }
            }
        };
        read(&settings.allowed_domains, Action::Allow, &mut out.allowed);
        read(&settings.blocked_domains, Action::Deny, &mut out.blocked);
        for host in &settings.allow_private {
            match Host::parse(host) {
                Ok(host) => {
                    out.private.insert(host);
                }
                Err(_) => problems.push(lint::warning(
                    list_entry(host, Action::Allow),
                    "this is no host or address",
                    "write a host name or an IP address",
                )),
            }
        }
        out
    }
}

fn list_entry(host: &str, action: Action) -> RuleRef {
    RuleRef {
        text: host.to_owned(),
        action: action.to_string(),
        layer: "settings".to_owned(),
        file: None,
        line: None,
    }
}

/// The absolute paths that deny rules name without wildcards: a sandbox can hold them shut.
pub(crate) fn unreadable(compiled: &Compiled, places: &crate::rule::path::Places<'_>) -> Vec<AbsPath> {
    let denied = compiled.references.iter().zip(&compiled.rules);
    denied
        .filter(|(reference, _)| reference.action == "deny")
        .filter_map(|(_, rule)| match rule {
            Rule::Path(pattern) if pattern.usage == PathUse::Read => pattern.literal(places),
            Rule::Path(_)
            | Rule::Tool(_)
            | Rule::Mcp(_)
            | Rule::Command(_)
            | Rule::Domain(_)
            | Rule::Agent(_)
            | Rule::Skill(_)
            | Rule::Param(_)
            | Rule::Never(..) => None,
        })
        .collect()
}
