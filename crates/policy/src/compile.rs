//! From what people wrote to what can be asked quickly.

use crate::decide::Policy;
use crate::facts::Workspace;
use crate::lint;
use crate::policy_book::PolicyBooks;
use crate::protect::{PathProtection, ReadOrWrite};
use crate::raw::{
    Enforcement, Layer, LayerRules, ManagedRestrictions, ProblemSeverity, RawPolicy, RawRule, RuleAction,
    RuleProblem,
};
use crate::rule::domain::{DomainIndex, DomainPattern};
use crate::rule::path::{BaseDirectories, PathIndex, PathPattern, PathUse};
use crate::rule::{ActionIndex, PermissionRule, PermissionRuleKind};
use crate::url::FetchSettings;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use toolgate_proto::host_pattern::{Host, parse_host};
use toolgate_proto::{AbsPath, Code, Mode, RuleRef, VerdictReason};

/// Everything a policy knows but its mode.
#[derive(Debug)]
pub(crate) struct CompiledPolicy {
    /// Every rule that can be matched, strongest layer first; indexes speak of them by position.
    pub(crate) rules: Vec<RuleEntry>,
    /// Where rules come from.
    origins: Vec<(Layer, Option<String>)>,
    pub(crate) deny: ActionIndex,
    pub(crate) ask: ActionIndex,
    pub(crate) allow: ActionIndex,
    /// Allow rules whose own pattern speaks of a sensitive name: only these answer the question about it.
    pub(crate) sensitive_reads: PathIndex,
    pub(crate) sensitive_edits: PathIndex,
    /// Patterns that deny reading and name one path: a sandbox can hold it shut.
    shut: Vec<PathPattern>,
    /// An allow rule speaks of hosts.
    pub(crate) has_allowed_hosts: bool,
    /// What a sandbox is told, for the workspace that was last seen.
    sandbox: OnceLock<SandboxPaths>,
    pub(crate) books: PolicyBooks,
    pub(crate) fetch: CompiledFetchSettings,
    pub(crate) protection: PathProtection,
    pub(crate) managed: ManagedRestrictions,
    pub(crate) disabled: HashSet<String>,
    pub(crate) auto_read_only: bool,
    pub(crate) block_reads_outside: bool,
    pub(crate) block_writes_outside: bool,
    pub(crate) allow_unsandboxed: bool,
    pub(crate) enforcement: Enforcement,
    /// Set when a rule that would deny or ask cannot be read.
    pub(crate) unusable: Option<VerdictReason>,
}

/// A rule as it stands in the settings.
#[derive(Debug)]
pub(crate) struct RuleEntry {
    pub(crate) action: RuleAction,
    pub(crate) kind: PermissionRuleKind,
    pub(crate) text: String,
    origin: u32,
    line: Option<usize>,
}

/// Paths that a sandbox holds shut.
#[derive(Debug, Clone)]
pub(crate) struct SandboxPaths {
    workspace: Workspace,
    pub(crate) protected: Vec<AbsPath>,
    pub(crate) unreadable: Vec<AbsPath>,
}

/// Fetch settings, compiled.
#[derive(Debug, Default)]
pub(crate) struct CompiledFetchSettings {
    pub(crate) allowed: DomainIndex,
    pub(crate) blocked: DomainIndex,
    pub(crate) auto_approve_https: bool,
    pub(crate) private: HashSet<Host<String>>,
}

/// Compiles what people wrote.
pub(crate) fn compile(mut raw: RawPolicy) -> (Policy, Vec<RuleProblem>) {
    let mut problems = Vec::new();
    raw.layers.sort_by_key(|layer| layer.layer);
    let guarded = PathProtection::new(&raw.protected_paths, &raw.protected_names, &raw.sensitive);
    let count = raw.layers.iter().map(|layer| layer.deny.len() + layer.ask.len() + layer.allow.len()).sum();
    let mut compiled = CompiledPolicy {
        rules: Vec::with_capacity(count),
        origins: Vec::with_capacity(raw.layers.len()),
        deny: ActionIndex::default(),
        ask: ActionIndex::default(),
        allow: ActionIndex::default(),
        sensitive_reads: PathIndex::default(),
        sensitive_edits: PathIndex::default(),
        shut: Vec::new(),
        has_allowed_hosts: false,
        sandbox: OnceLock::new(),
        books: PolicyBooks::compile(&raw.books, &mut problems),
        fetch: CompiledFetchSettings::compile(&raw.fetch, &mut problems),
        protection: guarded,
        disabled: raw.managed.disabled_tools.iter().cloned().collect(),
        managed: raw.managed.clone(),
        auto_read_only: raw.auto_allow_read_only_commands,
        block_reads_outside: raw.block_reads_outside,
        block_writes_outside: raw.block_writes_outside,
        allow_unsandboxed: raw.allow_unsandboxed,
        enforcement: raw.enforcement,
        unusable: None,
    };
    for layer in std::mem::take(&mut raw.layers) {
        compiled.add_layer(layer, &raw.managed, &mut problems);
    }
    lint::lint_all_rules(&compiled, &mut problems);
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
    compiled.unusable =
        problems.iter().find(|problem| problem.weight == ProblemSeverity::Fatal).map(|problem| {
            let text = format!("a rule that would deny or ask cannot be read: {}", problem.message);
            VerdictReason::new(Code::UnusablePolicy, text).with_rule(problem.rule.clone())
        });
    (Policy::of(Arc::new(compiled), mode), problems)
}

/// Why a rule does not count although it can be read.
fn ignored_reason(
    action: RuleAction,
    layer: Layer,
    trusted: bool,
    managed: &ManagedRestrictions,
) -> Option<(&'static str, &'static str)> {
    if action != RuleAction::Allow {
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

impl CompiledPolicy {
    fn add_layer(
        &mut self,
        mut layer: LayerRules,
        managed: &ManagedRestrictions,
        problems: &mut Vec<RuleProblem>,
    ) {
        let lists = [
            (RuleAction::Deny, std::mem::take(&mut layer.deny)),
            (RuleAction::Ask, std::mem::take(&mut layer.ask)),
            (RuleAction::Allow, std::mem::take(&mut layer.allow)),
        ];
        for (action, rules) in lists {
            let ignored = ignored_reason(action, layer.layer, layer.trusted, managed);
            for rule in rules {
                if let Some((message, fix)) = ignored {
                    problems.push(lint::note(layer.reference(action, &rule), message, fix));
                    continue;
                }
                match PermissionRule::parse(&rule.text, action, &layer.anchor) {
                    Ok(PermissionRule::Never(message, fix)) => {
                        problems.push(lint::warning(layer.reference(action, &rule), message, fix));
                    }
                    Ok(parsed) => {
                        for (message, fix) in lint::lint_rule(&parsed, action).into_iter().flatten() {
                            problems.push(lint::note(layer.reference(action, &rule), message, fix));
                        }
                        self.add(action, parsed, rule);
                    }
                    Err(bad) => {
                        let weight = if action == RuleAction::Allow {
                            ProblemSeverity::Warning
                        } else {
                            ProblemSeverity::Fatal
                        };
                        let rule = layer.reference(action, &rule);
                        problems.push(RuleProblem { rule, weight, message: bad.message, fix: bad.fix });
                    }
                }
            }
        }
        self.origins.push((layer.layer, layer.file));
    }

    fn add(&mut self, action: RuleAction, rule: PermissionRule, raw: RawRule) {
        let (Ok(id), Ok(origin)) = (u32::try_from(self.rules.len()), u32::try_from(self.origins.len()))
        else {
            return;
        };
        let written = RuleEntry { action, kind: rule.kind(), text: raw.text, origin, line: raw.line };
        self.rules.push(written);
        match (action, &rule) {
            (RuleAction::Allow, PermissionRule::Path(pattern)) => {
                if self.protection.sensitive_reason(&pattern.folded_text, ReadOrWrite::Write).is_some() {
                    match pattern.usage {
                        PathUse::Read => self.sensitive_reads.add(id, pattern.clone()),
                        PathUse::Edit => self.sensitive_edits.add(id, pattern.clone()),
                    }
                }
            }
            (RuleAction::Deny, PermissionRule::Path(pattern))
                if pattern.usage == PathUse::Read && pattern.is_single_path() =>
            {
                self.shut.push(pattern.clone());
            }
            (RuleAction::Allow, PermissionRule::Domain(_)) => self.has_allowed_hosts = true,
            (RuleAction::Allow | RuleAction::Ask | RuleAction::Deny, _) => {}
        }
        match action {
            RuleAction::Deny => self.deny.add(id, rule),
            RuleAction::Ask => self.ask.add(id, rule),
            RuleAction::Allow => self.allow.add(id, rule),
        }
    }

    /// A rule by its position.
    pub(crate) fn rule_entry(&self, id: u32) -> Option<&RuleEntry> {
        self.rules.get(usize::try_from(id).ok()?)
    }

    /// How a message speaks of a rule.
    pub(crate) fn reference(&self, id: u32) -> Option<RuleRef> {
        self.rule_entry(id).map(|written| self.entry_reference(written))
    }

    pub(crate) fn entry_reference(&self, written: &RuleEntry) -> RuleRef {
        let origin = usize::try_from(written.origin).ok().and_then(|origin| self.origins.get(origin));
        RuleRef {
            text: written.text.clone(),
            action: written.action.to_string(),
            layer: origin.map(|(layer, _)| layer.to_string()).unwrap_or_default(),
            file: origin.and_then(|(_, file)| file.clone()),
            line: written.line,
        }
    }

    /// What a sandbox is told. Sessions keep their workspace, so the answer is worked out once.
    /// Secrets of the home directory that no allow rule speaks of.
    fn home_secrets(&self, workspace: &Workspace, places: &BaseDirectories<'_>) -> Vec<AbsPath> {
        let spoken = |path: &AbsPath| {
            let (own, below) = (path.to_string(), path.join("x").to_string());
            [own, below].iter().any(|text| {
                self.allow.reads.find(text, places).is_some() || self.allow.edits.find(text, places).is_some()
            })
        };
        let secrets = workspace.home.iter().flat_map(PathProtection::home_secrets);
        secrets.filter(|path| !spoken(path)).collect()
    }

    pub(crate) fn sandbox_paths(&self, workspace: &Workspace, places: &BaseDirectories<'_>) -> SandboxPaths {
        let work_out = || SandboxPaths {
            workspace: workspace.clone(),
            protected: workspace.roots.iter().flat_map(PathProtection::sandbox_protected_paths).collect(),
            unreadable: self
                .shut
                .iter()
                .filter_map(|pattern| pattern.literal_path(places))
                .chain(self.home_secrets(workspace, places))
                .collect(),
        };
        let known = self.sandbox.get_or_init(work_out);
        if known.workspace == *workspace { known.clone() } else { work_out() }
    }
}

impl CompiledFetchSettings {
    fn compile(settings: &FetchSettings, problems: &mut Vec<RuleProblem>) -> Self {
        let mut out = Self { auto_approve_https: settings.auto_approve_https, ..Self::default() };
        let mut read = |hosts: &[String], action: RuleAction, into: &mut DomainIndex| {
            for host in hosts {
                match DomainPattern::parse(&format!("domain:{host}")) {
                    Ok(pattern) => into.add(0, pattern),
                    Err(bad) => {
                        let weight = if action == RuleAction::Allow {
                            ProblemSeverity::Warning
                        } else {
                            ProblemSeverity::Fatal
                        };
                        problems.push(RuleProblem {
                            rule: host_list_reference(host, action),
                            weight,
                            message: bad.message,
                            fix: bad.fix,
                        });
                    }
                }
            }
        };
        read(&settings.allowed_domains, RuleAction::Allow, &mut out.allowed);
        read(&settings.blocked_domains, RuleAction::Deny, &mut out.blocked);
        for host in &settings.allow_private {
            match parse_host(host) {
                Some(host) => {
                    out.private.insert(host);
                }
                None => problems.push(lint::warning(
                    host_list_reference(host, RuleAction::Allow),
                    "this is no host or address",
                    "write a host name or an IP address",
                )),
            }
        }
        out
    }
}

fn host_list_reference(host: &str, action: RuleAction) -> RuleRef {
    RuleRef {
        text: host.to_owned(),
        action: action.to_string(),
        layer: "settings".to_owned(),
        file: None,
        line: None,
    }
}
