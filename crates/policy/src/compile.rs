//! From what people wrote to what can be asked quickly.

use crate::book::PolicyBooks;
use crate::decide::Policy;
use crate::facts::Workspace;
use crate::lint;
use crate::protect::{PathProtection, Touch};
use crate::raw::{
    Action, Enforcement, Layer, LayerRules, ManagedRestrictions, Problem, RawPolicy, RawRule, Weight,
};
use crate::rule::domain::{DomainIndex, DomainPattern};
use crate::rule::path::{PathIndex, PathPattern, PathUse, Places};
use crate::rule::{ActionIndex, Kind, Rule};
use crate::url::FetchSettings;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use toolgate_proto::{AbsPath, Code, Mode, Reason, RuleRef};
use url::Host;

/// Everything a policy knows but its mode.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// Every rule that can be matched, strongest layer first; indexes speak of them by position.
    pub(crate) written: Vec<Written>,
    /// Where rules come from.
    origins: Vec<(Layer, Option<String>)>,
    pub(crate) deny: ActionIndex,
    pub(crate) ask: ActionIndex,
    pub(crate) allow: ActionIndex,
    /// Allow rules whose own pattern speaks of a sensitive name: only these answer the question about it.
    pub(crate) frank_reads: PathIndex,
    pub(crate) frank_edits: PathIndex,
    /// Patterns that deny reading and name one path: a sandbox can hold it shut.
    shut: Vec<PathPattern>,
    /// An allow rule speaks of hosts.
    pub(crate) opens_hosts: bool,
    /// What a sandbox is told, for the workspace that was last seen.
    sandbox: OnceLock<SandboxPaths>,
    pub(crate) books: PolicyBooks,
    pub(crate) fetch: Fetch,
    pub(crate) guarded: PathProtection,
    pub(crate) managed: ManagedRestrictions,
    pub(crate) disabled: HashSet<String>,
    pub(crate) auto_read_only: bool,
    pub(crate) block_reads_outside: bool,
    pub(crate) block_writes_outside: bool,
    pub(crate) allow_unsandboxed: bool,
    pub(crate) enforcement: Enforcement,
    /// Set when a rule that would deny or ask cannot be read.
    pub(crate) unusable: Option<Reason>,
}

/// A rule as it stands in the settings.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) action: Action,
    pub(crate) kind: Kind,
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
    let guarded = PathProtection::new(&raw.protected_paths, &raw.protected_names, &raw.sensitive);
    let count = raw.layers.iter().map(|layer| layer.deny.len() + layer.ask.len() + layer.allow.len()).sum();
    let mut compiled = Compiled {
        written: Vec::with_capacity(count),
        origins: Vec::with_capacity(raw.layers.len()),
        deny: ActionIndex::default(),
        ask: ActionIndex::default(),
        allow: ActionIndex::default(),
        frank_reads: PathIndex::default(),
        frank_edits: PathIndex::default(),
        shut: Vec::new(),
        opens_hosts: false,
        sandbox: OnceLock::new(),
        books: PolicyBooks::compile(&raw.books, &mut problems),
        fetch: Fetch::compile(&raw.fetch, &mut problems),
        guarded,
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
    managed: &ManagedRestrictions,
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
    fn add_layer(
        &mut self,
        mut layer: LayerRules,
        managed: &ManagedRestrictions,
        problems: &mut Vec<Problem>,
    ) {
        let lists = [
            (Action::Deny, std::mem::take(&mut layer.deny)),
            (Action::Ask, std::mem::take(&mut layer.ask)),
            (Action::Allow, std::mem::take(&mut layer.allow)),
        ];
        for (action, rules) in lists {
            let ignored = ignored(action, layer.layer, layer.trusted, managed);
            for rule in rules {
                if let Some((message, fix)) = ignored {
                    problems.push(lint::note(layer.reference(action, &rule), message, fix));
                    continue;
                }
                match Rule::parse(&rule.text, action, &layer.anchor) {
                    Ok(Rule::Never(message, fix)) => {
                        problems.push(lint::warning(layer.reference(action, &rule), message, fix));
                    }
                    Ok(parsed) => {
                        for (message, fix) in lint::oddities(&parsed, action).into_iter().flatten() {
                            problems.push(lint::note(layer.reference(action, &rule), message, fix));
                        }
                        self.add(action, parsed, rule);
                    }
                    Err(bad) => {
                        let weight = if action == Action::Allow { Weight::Warning } else { Weight::Fatal };
                        let rule = layer.reference(action, &rule);
                        problems.push(Problem { rule, weight, message: bad.message, fix: bad.fix });
                    }
                }
            }
        }
        self.origins.push((layer.layer, layer.file));
    }

    fn add(&mut self, action: Action, rule: Rule, raw: RawRule) {
        let (Ok(id), Ok(origin)) = (u32::try_from(self.written.len()), u32::try_from(self.origins.len()))
        else {
            return;
        };
        let written = Written { action, kind: rule.kind(), text: raw.text, origin, line: raw.line };
        self.written.push(written);
        match (action, &rule) {
            (Action::Allow, Rule::Path(pattern)) => {
                if self.guarded.sensitive(&pattern.spoken, Touch::Write).is_some() {
                    match pattern.usage {
                        PathUse::Read => self.frank_reads.add(id, pattern.clone()),
                        PathUse::Edit => self.frank_edits.add(id, pattern.clone()),
                    }
                }
            }
            (Action::Deny, Rule::Path(pattern))
                if pattern.usage == PathUse::Read && pattern.is_single_path() =>
            {
                self.shut.push(pattern.clone());
            }
            (Action::Allow, Rule::Domain(_)) => self.opens_hosts = true,
            (Action::Allow | Action::Ask | Action::Deny, _) => {}
        }
        match action {
            Action::Deny => self.deny.add(id, rule),
            Action::Ask => self.ask.add(id, rule),
            Action::Allow => self.allow.add(id, rule),
        }
    }

    /// A rule by its position.
    pub(crate) fn written(&self, id: u32) -> Option<&Written> {
        self.written.get(usize::try_from(id).ok()?)
    }

    /// How a message speaks of a rule.
    pub(crate) fn reference(&self, id: u32) -> Option<RuleRef> {
        self.written(id).map(|written| self.entry_reference(written))
    }

    pub(crate) fn entry_reference(&self, written: &Written) -> RuleRef {
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
    fn home_secrets(&self, workspace: &Workspace, places: &Places<'_>) -> Vec<AbsPath> {
        let spoken = |path: &AbsPath| {
            let (own, below) = (path.to_string(), path.join("x").to_string());
            [own, below].iter().any(|text| {
                self.allow.reads.find(text, places).is_some() || self.allow.edits.find(text, places).is_some()
            })
        };
        let secrets = workspace.home.iter().flat_map(PathProtection::home_secrets);
        secrets.filter(|path| !spoken(path)).collect()
    }

    pub(crate) fn sandbox_paths(&self, workspace: &Workspace, places: &Places<'_>) -> SandboxPaths {
        let work_out = || SandboxPaths {
            workspace: workspace.clone(),
            protected: workspace.roots.iter().flat_map(PathProtection::inside).collect(),
            unreadable: self
                .shut
                .iter()
                .filter_map(|pattern| pattern.literal(places))
                .chain(self.home_secrets(workspace, places))
                .collect(),
        };
        let known = self.sandbox.get_or_init(work_out);
        if known.workspace == *workspace { known.clone() } else { work_out() }
    }
}

impl Fetch {
    fn compile(settings: &FetchSettings, problems: &mut Vec<Problem>) -> Self {
        let mut out = Self { auto_approve_https: settings.auto_approve_https, ..Self::default() };
        let mut read = |hosts: &[String], action: Action, into: &mut DomainIndex| {
            for host in hosts {
                match DomainPattern::parse(&format!("domain:{host}")) {
                    Ok(pattern) => into.add(0, pattern),
                    Err(bad) => {
                        let weight = if action == Action::Allow { Weight::Warning } else { Weight::Fatal };
                        problems.push(Problem {
                            rule: host_list_reference(host, action),
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
                    host_list_reference(host, Action::Allow),
                    "this is no host or address",
                    "write a host name or an IP address",
                )),
            }
        }
        out
    }
}

fn host_list_reference(host: &str, action: Action) -> RuleRef {
    RuleRef {
        text: host.to_owned(),
        action: action.to_string(),
        layer: "settings".to_owned(),
        file: None,
        line: None,
    }
}
