//! Compiles the rules of all layers into indexes that answer quickly which rule matches.
//!
//! A deny rule or an ask rule that cannot be parsed, or that can never match, is fatal: the compiled policy then denies
//! every call. Skipping such a rule would be more convenient, and would silently allow what its author wanted denied. An
//! allow rule of that kind is skipped with a warning, because losing it only makes the policy stricter.

use crate::decide::Policy;
use crate::fetch_settings::CompiledFetchSettings;
use crate::lint;
use crate::policy_book::PolicyBooks;
use crate::protect::{PathProtection, ReadOrWrite};
use crate::raw::{
    Enforcement, Layer, LayerRules, ManagedRestrictions, ProblemSeverity, RawPolicy, RawRule, RuleAction,
    RuleProblem,
};
use crate::rule::path::{BaseDirectories, PathPattern, PathUse};
use crate::rule::path_index::PathIndex;
use crate::rule::{ActionIndex, PermissionRule, PermissionRuleKind};
use crate::setting_places::SettingPlace;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use toolgate_proto::{AbsPath, Code, Mode, RiskLevel, RuleRef, ToolIdentity, VerdictReason, Workspace};

/// A policy without its mode: every rule and setting that decisions depend on. What a trial of further allow rules leaves
/// as it is, is shared by clones.
#[derive(Debug, Clone)]
pub(crate) struct CompiledPolicy {
    /// Every rule that can match, strongest layer first. Indexes refer to a rule by its position here.
    pub(crate) rules: Arc<Vec<RuleEntry>>,
    /// The layer and the file of each [`LayerRules`], which [`RuleEntry::origin`] refers to.
    origins: Arc<Vec<(Layer, Option<String>)>>,
    /// The deny rules of all layers.
    pub(crate) deny: Arc<ActionIndex>,
    /// The ask rules of all layers.
    pub(crate) ask: Arc<ActionIndex>,
    /// The allow rules of all trusted layers.
    pub(crate) allow: Arc<AllowRules>,
    /// Further allow rules that are tried out, with their texts. They are numbered after [`CompiledPolicy::rules`].
    tried: Option<Arc<(AllowRules, Vec<RuleEntry>)>>,
    /// Patterns of `Read` deny rules that name a single path, which a sandbox can make unreadable by path.
    unreadable_patterns: Arc<Vec<PathPattern>>,
    /// There is an allow rule for a host, so that commands get the filtering proxy.
    pub(crate) has_allowed_hosts: bool,
    /// The paths for the sandbox, computed for the first workspace that is asked about.
    sandbox: Arc<OnceLock<SandboxPaths>>,
    /// The policy books of all layers.
    pub(crate) books: Arc<PolicyBooks>,
    /// Settings for fetches.
    pub(crate) fetch: Arc<CompiledFetchSettings>,
    /// Protected and sensitive names and paths.
    pub(crate) protection: Arc<PathProtection>,
    /// What managed settings restrict.
    pub(crate) managed: Arc<ManagedRestrictions>,
    /// Tools that are disabled by name.
    pub(crate) disabled: Arc<HashSet<String>>,
    /// A command that only reads inside the workspace needs no allow rule.
    pub(crate) auto_read_only: bool,
    /// A read outside the workspace that no rule allows is denied instead of asked about.
    pub(crate) block_reads_outside: bool,
    /// A write outside the workspace that no rule allows is denied instead of asked about.
    pub(crate) block_writes_outside: bool,
    /// A call may ask to run its command outside the sandbox.
    pub(crate) allow_unsandboxed: bool,
    /// The severity from which a danger in a command denies instead of asking.
    pub(crate) deny_dangers_from: Option<RiskLevel>,
    /// Whether the kernel limits commands to their rights.
    pub(crate) enforcement: Enforcement,
    /// The rules and settings as written, to try out advice.
    pub(crate) raw: Arc<RawPolicy>,
    /// Set if a deny rule or an ask rule is invalid: why every call is denied.
    pub(crate) unusable: Option<VerdictReason>,
}

/// Allow rules, indexed.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllowRules {
    /// All of them.
    pub(crate) index: ActionIndex,
    /// `Read` rules whose own pattern names a sensitive file: only such a rule allows it. `Read(**)` does not.
    pub(crate) sensitive_reads: PathIndex,
    /// The same for `Edit` rules.
    pub(crate) sensitive_edits: PathIndex,
}

impl AllowRules {
    /// Adds a rule.
    fn add(&mut self, id: u32, rule: PermissionRule, protection: &PathProtection) {
        if let PermissionRule::Path(pattern) = &rule
            && protection.sensitive_reason(&pattern.folded_text, ReadOrWrite::Write).is_some()
        {
            match pattern.usage {
                PathUse::Read => self.sensitive_reads.add(id, pattern.clone()),
                PathUse::Edit => self.sensitive_edits.add(id, pattern.clone()),
            }
        }
        self.index.add(id, rule);
    }
}

/// A rule as written in the settings, for messages and lints.
#[derive(Debug, Clone)]
pub(crate) struct RuleEntry {
    /// The list that contains it.
    pub(crate) action: RuleAction,
    /// What it is about, for lints.
    pub(crate) kind: PermissionRuleKind,
    /// The rule as written.
    pub(crate) text: String,
    /// The position of its layer and file in [`CompiledPolicy::origins`].
    origin: u32,
    /// The line in that file, from 1, if known.
    line: Option<usize>,
}

/// Paths that a sandbox without a seccomp notification handler can enforce.
#[derive(Debug, Clone)]
pub(crate) struct SandboxPaths {
    /// The workspace that the paths were computed for.
    workspace: Workspace,
    /// Paths that stay unwritable.
    pub(crate) protected: Vec<AbsPath>,
    /// Paths that stay unreadable.
    pub(crate) unreadable: Vec<AbsPath>,
}

/// Compiles the rules and settings of all layers, and lists what is wrong with them.
pub(crate) fn compile(mut raw: RawPolicy) -> (Policy, Vec<RuleProblem>) {
    let mut problems = Vec::new();
    raw.layers.sort_by_key(|layer| layer.layer);
    let count = raw.layers.iter().map(|layer| layer.deny.len() + layer.ask.len() + layer.allow.len()).sum();
    let mut compiled = CompiledPolicy {
        rules: Arc::new(Vec::with_capacity(count)),
        origins: Arc::new(Vec::with_capacity(raw.layers.len())),
        deny: Arc::default(),
        ask: Arc::default(),
        allow: Arc::default(),
        tried: None,
        unreadable_patterns: Arc::default(),
        has_allowed_hosts: false,
        sandbox: Arc::default(),
        books: Arc::new(PolicyBooks::compile(&raw.books, raw.unmatchable_rules, &mut problems)),
        fetch: Arc::new(CompiledFetchSettings::compile(&raw.fetch, &raw.setting_places, &mut problems)),
        protection: Arc::new(PathProtection::new(&raw.protected_paths, &raw.protected_names, &raw.sensitive)),
        disabled: Arc::new(raw.managed.disabled_tools.iter().cloned().collect()),
        managed: Arc::new(raw.managed.clone()),
        auto_read_only: raw.auto_allow_read_only_commands,
        block_reads_outside: raw.block_reads_outside,
        block_writes_outside: raw.block_writes_outside,
        allow_unsandboxed: raw.allow_unsandboxed,
        deny_dangers_from: raw.deny_dangers_from,
        enforcement: raw.enforcement,
        raw: Arc::new(raw.clone()),
        unusable: None,
    };
    for layer in std::mem::take(&mut raw.layers) {
        compiled.add_layer(layer, &raw, &mut problems);
    }
    lint::lint_all_rules(&compiled, &mut problems);
    let mut mode = raw.mode;
    if mode == Mode::Bypass && raw.managed.disable_bypass_permissions_mode {
        mode = Mode::Default;
        problems.push(disabled_bypass_warning(raw.setting_places.get(DISABLE_BYPASS_KEY)));
    }
    compiled.unusable =
        problems.iter().find(|problem| problem.weight == ProblemSeverity::Fatal).map(|problem| {
            let text =
                format!("a deny or ask rule cannot work, so every call is denied: {}", problem.message);
            VerdictReason::new(Code::UnusablePolicy, text).with_rule(problem.rule.clone())
        });
    (Policy::new(Arc::new(compiled), mode), problems)
}

/// The setting that forbids mode bypass; any file can have it.
const DISABLE_BYPASS_KEY: &str = "permissions.disableBypassPermissionsMode";

/// The warning that mode bypass is not used, with the file that forbids it.
fn disabled_bypass_warning(place: Option<&SettingPlace>) -> RuleProblem {
    let rule =
        RuleRef::new("mode bypass", "allow", place.map_or(Layer::Managed, |place| place.layer).to_string())
            .with_place(place.and_then(|place| place.file.clone()), place.and_then(|place| place.line));
    let message = format!("mode bypass is disabled by `{DISABLE_BYPASS_KEY}`");
    lint::warning(rule, &message, "mode default is used instead")
}

/// How severe it is that a rule of this action is invalid. Losing an allow rule only makes the policy stricter.
pub(crate) fn invalid_rule_severity(action: RuleAction) -> ProblemSeverity {
    match action {
        RuleAction::Allow => ProblemSeverity::Warning,
        RuleAction::Ask | RuleAction::Deny => ProblemSeverity::Fatal,
    }
}

/// Why a valid rule is ignored, if it is: the message and the fix.
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
            "an allow rule of a project has no effect until the project is trusted",
            "run `toolgate trust add` if you trust the project",
        ));
    }
    let is_restricted =
        managed.allow_managed_permission_rules_only && !matches!(layer, Layer::Managed | Layer::Default);
    is_restricted.then_some((
        "managed settings ignore allow rules of other layers",
        "ask your administrator to add the rule to the managed settings",
    ))
}

impl CompiledPolicy {
    /// Parses and adds the rules of one layer, and reports those that are invalid or ignored.
    fn add_layer(&mut self, mut layer: LayerRules, raw: &RawPolicy, problems: &mut Vec<RuleProblem>) {
        let lists = [
            (RuleAction::Deny, std::mem::take(&mut layer.deny)),
            (RuleAction::Ask, std::mem::take(&mut layer.ask)),
            (RuleAction::Allow, std::mem::take(&mut layer.allow)),
        ];
        for (action, rules) in lists {
            let ignored = ignored_reason(action, layer.layer, layer.trusted, &raw.managed);
            for rule in rules {
                if let Some((message, fix)) = ignored {
                    problems.push(lint::note(layer.reference(action, &rule), message, fix));
                    continue;
                }
                match PermissionRule::parse(&rule.text, action, &layer.anchor) {
                    Ok(PermissionRule::Never(why)) => {
                        let weight = raw.unmatchable_rules.severity(action);
                        let rule = layer.reference(action, &rule);
                        problems.push(RuleProblem { rule, weight, message: why.message, fix: why.fix });
                    }
                    Ok(parsed) => {
                        for (message, fix) in lint::lint_rule(&parsed, action).into_iter().flatten() {
                            problems.push(lint::note(layer.reference(action, &rule), message, fix));
                        }
                        problems.extend(lint::lint_anchor(&layer, action, &parsed, &rule));
                        self.add(action, parsed, rule);
                    }
                    Err(bad) => {
                        let (rule, weight) = (layer.reference(action, &rule), invalid_rule_severity(action));
                        problems.push(RuleProblem { rule, weight, message: bad.message, fix: bad.fix });
                    }
                }
            }
        }
        Arc::make_mut(&mut self.origins).push((layer.layer, layer.file));
    }

    /// Adds one valid rule to the list of rules and to the index of its action.
    fn add(&mut self, action: RuleAction, rule: PermissionRule, raw: RawRule) {
        let (Ok(id), Ok(origin)) = (u32::try_from(self.rules.len()), u32::try_from(self.origins.len()))
        else {
            return;
        };
        let entry = RuleEntry { action, kind: rule.kind(), text: raw.text, origin, line: raw.line };
        Arc::make_mut(&mut self.rules).push(entry);
        match (action, &rule) {
            (RuleAction::Deny, PermissionRule::Path(pattern))
                if pattern.usage == PathUse::Read && pattern.is_single_path() =>
            {
                Arc::make_mut(&mut self.unreadable_patterns).push(pattern.clone());
            }
            (RuleAction::Allow, PermissionRule::Domain(_)) => self.has_allowed_hosts = true,
            (RuleAction::Allow | RuleAction::Ask | RuleAction::Deny, _) => {}
        }
        match action {
            RuleAction::Deny => Arc::make_mut(&mut self.deny).add(id, rule),
            RuleAction::Ask => Arc::make_mut(&mut self.ask).add(id, rule),
            RuleAction::Allow => Arc::make_mut(&mut self.allow).add(id, rule, &self.protection),
        }
    }

    /// The same policy with these allow rules, to try them out. It shares everything else: compiling all rules again would
    /// take milliseconds for each question where there are many.
    pub(crate) fn with_allow_rules<'s>(&self, rules: impl Iterator<Item = &'s str>) -> Self {
        let (mut allow, mut entries) = (AllowRules::default(), Vec::new());
        for text in rules {
            let rule = PermissionRule::parse(text, RuleAction::Allow, &AbsPath::root());
            let (Ok(rule), Ok(id)) = (rule, u32::try_from(self.rules.len() + entries.len())) else {
                continue;
            };
            let (action, kind) = (RuleAction::Allow, rule.kind());
            entries.push(RuleEntry { action, kind, text: text.to_owned(), origin: u32::MAX, line: None });
            allow.add(id, rule, &self.protection);
        }
        Self { tried: Some(Arc::new((allow, entries))), ..self.clone() }
    }

    /// The entry of `disabledTools` that disables a tool.
    pub(crate) fn disabled_name(&self, tool: &ToolIdentity) -> Option<&str> {
        if self.disabled.is_empty() {
            return None;
        }
        tool.restricted_names().find_map(|name| self.disabled.get(name)).map(String::as_str)
    }

    /// The allow rules in force, and those that are tried out.
    pub(crate) fn allow_rules(&self) -> impl Iterator<Item = &AllowRules> {
        std::iter::once(&*self.allow).chain(self.tried.iter().map(|tried| &tried.0))
    }

    /// The first allow rule that a search finds.
    pub(crate) fn find_allow(&self, find: impl Fn(&ActionIndex) -> Option<u32>) -> Option<u32> {
        self.allow_rules().find_map(|allow| find(&allow.index))
    }

    /// A rule by its position.
    pub(crate) fn rule_entry(&self, id: u32) -> Option<&RuleEntry> {
        let at = usize::try_from(id).ok()?;
        self.rules.get(at).or_else(|| self.tried.as_ref()?.1.get(at.checked_sub(self.rules.len())?))
    }

    /// The reference to a rule that messages show.
    pub(crate) fn reference(&self, id: u32) -> Option<RuleRef> {
        self.rule_entry(id).map(|entry| self.entry_reference(entry))
    }

    /// The reference to a rule entry that messages show.
    pub(crate) fn entry_reference(&self, entry: &RuleEntry) -> RuleRef {
        let origin = usize::try_from(entry.origin).ok().and_then(|origin| self.origins.get(origin));
        RuleRef::new(
            entry.text.clone(),
            entry.action.to_string(),
            origin.map(|(layer, _)| layer.to_string()).unwrap_or_default(),
        )
        .with_place(origin.and_then(|(_, file)| file.clone()), entry.line)
    }

    /// Files with secrets in the home directory, except those that an allow rule matches.
    fn home_secrets(&self, workspace: &Workspace, bases: &BaseDirectories<'_>) -> Vec<AbsPath> {
        let is_allowed = |path: &AbsPath| {
            let (own, below) = (path.to_string(), path.join("x").to_string());
            [own, below].iter().any(|text| {
                let allow = &self.allow.index;
                allow.reads.find(text, bases).is_some() || allow.edits.find(text, bases).is_some()
            })
        };
        let secrets = workspace.home.iter().flat_map(PathProtection::home_secrets);
        secrets.filter(|path| !is_allowed(path)).collect()
    }

    /// The paths for the sandbox. A session keeps its workspace, so they are computed once and cloned afterwards.
    pub(crate) fn sandbox_paths(&self, workspace: &Workspace, bases: &BaseDirectories<'_>) -> SandboxPaths {
        let compute = || SandboxPaths {
            workspace: workspace.clone(),
            protected: workspace.roots.iter().flat_map(PathProtection::sandbox_protected_paths).collect(),
            unreadable: self
                .unreadable_patterns
                .iter()
                .filter_map(|pattern| pattern.literal_path(bases))
                .chain(self.home_secrets(workspace, bases))
                .collect(),
        };
        let cached = self.sandbox.get_or_init(compute);
        if cached.workspace == *workspace { cached.clone() } else { compute() }
    }
}
