//! One call under judgement: the objections raised, the grounds found, and what they come to.

use super::rights::RightsBasis;
use crate::compile::CompiledPolicy;
use crate::decide::PolicyRequest;
use crate::fold::fold_path;
use crate::judgement::{CommandVerdict, Judgement, JudgementStep};
use crate::raw::RuleAction;
use crate::rule::path::BaseDirectories;
use std::borrow::Cow;
use toolgate_proto::{
    AbsPath, Code, Effect, GitTerms, GitUse, Mode, NetworkAccess, RightsLevel, RiskLevel, RiskWarning,
    RuleRef, Terms, Verdict, VerdictReason,
};
use toolgate_shell_syntax::CommandPart;

/// The stages of judgement, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PolicyCheck {
    Usable,
    DenyRules,
    Mode,
    Hooks,
    Book,
    Protected,
    AskRules,
    Risks,
    Grants,
}

impl PolicyCheck {
    const ALL: [Self; 9] = [
        Self::Usable,
        Self::DenyRules,
        Self::Mode,
        Self::Hooks,
        Self::Book,
        Self::Protected,
        Self::AskRules,
        Self::Risks,
        Self::Grants,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Usable => "rules",
            Self::DenyRules => "deny rules",
            Self::Mode => "mode",
            Self::Hooks => "hooks",
            Self::Book => "policy book",
            Self::Protected => "protected paths",
            Self::AskRules => "ask rules",
            Self::Risks => "risks",
            Self::Grants => "allow rules",
        }
    }

    fn no_objection_text(self) -> &'static str {
        match self {
            Self::Usable => "all can be read",
            Self::DenyRules | Self::AskRules => "none matches",
            Self::Mode => "does not decide",
            Self::Hooks => "none objects",
            Self::Book => "does not object",
            Self::Protected => "none is written",
            Self::Risks => "none",
            Self::Grants => "everything is covered",
        }
    }
}

/// How strong an objection is, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ObjectionKind {
    /// A question because nothing allows it: a hook or mode bypass may answer it.
    ByDefault,
    /// A question that a person must answer.
    Explicit,
    /// No.
    Deny,
}

/// A reason not to let a call pass.
#[derive(Debug, Clone)]
pub(crate) struct PolicyObjection {
    pub(crate) kind: ObjectionKind,
    pub(crate) check: PolicyCheck,
    pub(crate) reason: VerdictReason,
}

/// A call under judgement.
pub(crate) struct PolicyEvaluation<'r> {
    pub(crate) compiled: &'r CompiledPolicy,
    pub(crate) mode: Mode,
    pub(crate) request: &'r PolicyRequest<'r>,
    /// Where allow patterns start.
    pub(crate) exact: BaseDirectories<'r>,
    /// Where deny and ask patterns start.
    pub(crate) folded: BaseDirectories<'r>,
    pub(crate) objections: Vec<PolicyObjection>,
    /// Why parts of the call may pass, in the order found.
    pub(crate) allow_reasons: Vec<(Cow<'static, str>, Option<u32>)>,
    pub(crate) warnings: Vec<RiskWarning>,
    pub(crate) parts: Vec<CommandVerdict>,
    /// Narrow rules that would have covered what is not covered.
    pub(crate) suggestions: Vec<String>,
    /// What allows every use of the tool.
    pub(crate) grant: Option<ToolWideGrant>,
    /// The command being weighed does not look at names that begin with a dot.
    pub(crate) skips_hidden: bool,
    /// What git does in the command lines weighed so far.
    pub(crate) git: GitTerms,
    /// The worst danger that a command analysis saw.
    pub(crate) danger: Option<RiskLevel>,
    /// A command is covered by a rule or not at all, so that what it does was not foreseen.
    pub(crate) covered_as_whole: bool,
    /// A mode or a hook answered a question that no rule and no person did: nothing outside the workspace becomes
    /// writable by that.
    pub(crate) answered_by_default: bool,
    /// The command line being weighed is written in the plain subset of bash.
    pub(crate) plain_syntax: bool,
}

/// Whether a person said yes to the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicyApproval {
    Given,
    NotAsked,
}

/// What allows every use of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolWideGrant {
    /// A rule with nothing but the tool's name.
    Rule(u32),
    /// The policy book.
    Book,
}

impl<'r> PolicyEvaluation<'r> {
    pub(crate) fn new(compiled: &'r CompiledPolicy, mode: Mode, request: &'r PolicyRequest<'r>) -> Self {
        let workspace = request.workspace;
        let text = |path: &'r AbsPath| path.as_path().to_string_lossy();
        let exact = BaseDirectories { cwd: text(&workspace.cwd), home: workspace.home.as_ref().map(text) };
        let fold = |path: &Cow<'r, str>| match path {
            Cow::Borrowed(path) => fold_path(path),
            Cow::Owned(path) => Cow::Owned(fold_path(path).into_owned()),
        };
        let folded = BaseDirectories { cwd: fold(&exact.cwd), home: exact.home.as_ref().map(fold) };
        Self {
            compiled,
            mode,
            request,
            exact,
            folded,
            objections: Vec::new(),
            allow_reasons: Vec::new(),
            warnings: Vec::new(),
            parts: Vec::new(),
            suggestions: Vec::new(),
            grant: None,
            skips_hidden: false,
            git: GitTerms::default(),
            danger: None,
            covered_as_whole: false,
            answered_by_default: false,
            plain_syntax: false,
        }
    }

    pub(crate) fn add_objection(&mut self, force: ObjectionKind, stage: PolicyCheck, reason: VerdictReason) {
        self.objections.push(PolicyObjection { kind: force, check: stage, reason });
    }

    /// An objection by a rule.
    pub(crate) fn add_rule_objection(
        &mut self,
        force: ObjectionKind,
        stage: PolicyCheck,
        code: Code,
        text: String,
        rule: u32,
    ) {
        let reason = VerdictReason { text, code, rule: self.compiled.reference(rule) };
        self.add_objection(force, stage, reason);
    }

    /// A question because nothing covers it, and a rule that would.
    pub(crate) fn add_uncovered_objection(&mut self, text: impl Into<String>, suggestion: Option<String>) {
        self.add_objection(
            ObjectionKind::ByDefault,
            PolicyCheck::Grants,
            VerdictReason::new(Code::NobodyToAsk, text),
        );
        self.suggestions.extend(suggestion);
    }

    pub(crate) fn add_allow_reason(&mut self, text: impl Into<Cow<'static, str>>, rule: Option<u32>) {
        self.allow_reasons.push((text.into(), rule));
    }

    pub(crate) fn add_grant_reason(&mut self, grant: ToolWideGrant) {
        match grant {
            ToolWideGrant::Rule(id) => self.add_allow_reason("a rule allows the tool", Some(id)),
            ToolWideGrant::Book => self.add_allow_reason("the policy book allows the tool", None),
        }
    }

    pub(crate) fn add_warning(&mut self, kind: &str, severity: RiskLevel, text: String) {
        self.warnings.push(RiskWarning::new(kind, severity, text));
    }

    pub(crate) fn reference(&self, id: u32) -> Option<RuleRef> {
        self.compiled.reference(id)
    }

    /// What all objections come to.
    pub(crate) fn conclude(mut self) -> Judgement {
        let decisive = self.objections.iter().enumerate().max_by(|(left, a), (right, b)| {
            // The strictest; of equals the earliest stage, and there the first raised.
            a.kind.cmp(&b.kind).then(b.check.cmp(&a.check)).then(right.cmp(left))
        });
        let decisive = decisive.map(|(at, _)| at);
        let mut steps = self.steps(decisive);
        let decisive = decisive.and_then(|at| self.objections.get(at).cloned());
        let risk = self.risk();
        let mut flip = None;
        let verdict = match decisive {
            None => {
                let (text, rule) =
                    self.allow_reasons.first().cloned().unwrap_or(("nothing is touched".into(), None));
                let reason = VerdictReason {
                    text: text.into_owned(),
                    code: Code::DeniedByRule,
                    rule: rule.and_then(|id| self.reference(id)),
                };
                let last = steps.last_mut();
                if let Some(step) = last {
                    step.found = reason.text.clone().into();
                    step.action = Some(RuleAction::Allow);
                    step.rule.clone_from(&reason.rule);
                }
                Verdict::Allow(self.terms(reason, PolicyApproval::NotAsked))
            }
            Some(objection) => match objection.kind {
                ObjectionKind::Deny => {
                    flip = self.suggest_settings_change(&objection, &[]);
                    Verdict::Deny(objection.reason)
                }
                ObjectionKind::Explicit => {
                    flip = self.suggest_settings_change(&objection, &[]);
                    self.ask(objection, Vec::new())
                }
                ObjectionKind::ByDefault => match self.answer_by_default(&mut steps) {
                    Some(reason) => {
                        self.answered_by_default = true;
                        Verdict::Allow(self.terms(reason, PolicyApproval::NotAsked))
                    }
                    None => {
                        let suggestions = self.suggestions();
                        flip = self.suggest_settings_change(&objection, &suggestions);
                        self.ask(objection, suggestions)
                    }
                },
            },
        };
        let rights = match &verdict {
            Verdict::Allow(terms) => Some(terms.rights.clone()),
            Verdict::Ask(_) => Some(self.rights(RightsBasis::AsWhole)),
            Verdict::Deny(_) => None,
        };
        let rights = rights.filter(|_| !self.request.survey.commands.is_empty());
        Judgement { verdict, risk, steps, parts: self.parts, flip, rights }
    }

    /// Who answers a question that no rule asked, if anybody does.
    fn answer_by_default(&self, steps: &mut Vec<JudgementStep>) -> Option<VerdictReason> {
        let (looked_at, text) = match self.mode {
            Mode::Bypass => ("mode bypass", "mode bypass skips questions by default".to_owned()),
            Mode::Default | Mode::Plan | Mode::AcceptEdits | Mode::DontAsk | Mode::Deny => {
                let opinion =
                    self.request.opinions.iter().find(|opinion| opinion.action == RuleAction::Allow)?;
                ("hooks", format!("hook {} answers the question by default", opinion.by))
            }
        };
        steps.push(JudgementStep {
            looked_at: looked_at.into(),
            found: text.clone().into(),
            action: Some(RuleAction::Allow),
            rule: None,
        });
        Some(VerdictReason::new(Code::DeniedByMode, text))
    }

    /// Every stage up to the one that decided; the step that decided stands last.
    fn steps(&self, decisive: Option<usize>) -> Vec<JudgementStep> {
        let decisive = decisive.and_then(|at| Some((at, self.objections.get(at)?)));
        let last = decisive.map_or(PolicyCheck::Grants, |(_, objection)| objection.check);
        let mut steps = Vec::with_capacity(10);
        for stage in PolicyCheck::ALL.into_iter().filter(|stage| *stage <= last) {
            let raised = self.objections.iter().enumerate().filter(|(_, objection)| objection.check == stage);
            let mut silent = true;
            for (at, objection) in raised {
                silent = false;
                if decisive.is_none_or(|(decisive, _)| decisive != at) {
                    steps.push(objection.step());
                }
            }
            if silent {
                let (looked_at, found) = (stage.as_str().into(), stage.no_objection_text().into());
                steps.push(JudgementStep { looked_at, found, action: None, rule: None });
            }
        }
        steps.extend(decisive.map(|(_, objection)| objection.step()));
        steps
    }

    /// The obligations of the run.
    pub(crate) fn terms(&self, reason: VerdictReason, approval: PolicyApproval) -> Terms {
        let effects = &self.request.intent.effects;
        let commands = effects.iter().filter_map(|effect| match effect {
            Effect::Exec { command } => Some(command),
            Effect::Read { .. }
            | Effect::Write { .. }
            | Effect::Fetch { .. }
            | Effect::Search { .. }
            | Effect::Delegate { .. }
            | Effect::Skill { .. }
            | Effect::Remote { .. }
            | Effect::Ask
            | Effect::State { .. }
            | Effect::Opaque => None,
        });
        let mut commands = commands.peekable();
        let runs = commands.peek().is_some();
        let (mut protected, unreadable) = if runs {
            let paths = self.compiled.sandbox_paths(self.request.workspace, &self.exact);
            (paths.protected, paths.unreadable)
        } else {
            (Vec::new(), Vec::new())
        };
        let rights = self.rights(match approval {
            PolicyApproval::Given => RightsBasis::AsWhole,
            PolicyApproval::NotAsked => RightsBasis::ByEffects,
        });
        let network = match rights.level {
            RightsLevel::Workspace => self.network(runs),
            // A search that only reads on this machine may still fetch: then it runs no command.
            RightsLevel::ReadOnly | RightsLevel::NamedWrites if !runs => self.network(runs),
            RightsLevel::ReadOnly | RightsLevel::NamedWrites => NetworkAccess::None,
        };
        let named = |path: &AbsPath| rights.named.iter().any(|named| named == path || path.is_under(named));
        protected.retain(|path| !named(path));
        Terms {
            reason,
            // Only a person lets a command out: no rule, mode or hook does.
            unsandboxed: approval == PolicyApproval::Given && commands.any(|command| command.unsandboxed),
            protected,
            unreadable,
            network,
            rights,
            git: if approval == PolicyApproval::Given { self.approved_git_terms() } else { self.git },
        }
    }

    /// What git does in a call that a person approved: nothing in it relies on git only reading.
    fn approved_git_terms(&self) -> GitTerms {
        let parts = || self.request.survey.commands.iter().flat_map(|command| &command.analysis.parts);
        let usage = if !parts().any(CommandPart::runs_git) {
            GitUse::Absent
        } else if parts().all(CommandPart::reads_if_bounded) {
            GitUse::GrantedReads
        } else {
            GitUse::Granted
        };
        GitTerms { usage, searches: parts().any(CommandPart::searches_by_git) }
    }

    /// The hosts that the call names. Where rules open hosts to commands the list may be empty: then the filtering
    /// proxy is there, and asks [`Policy::judge_target`](crate::Policy::judge_target) about every connection.
    fn network(&self, runs: bool) -> NetworkAccess {
        let inferred = self.request.survey.commands.iter().flat_map(|command| &command.analysis.parts);
        let inferred = inferred.flat_map(|part| &part.effects).map(|inferred| &inferred.effect);
        let mut hosts: Vec<String> = self
            .request
            .intent
            .effects
            .iter()
            .chain(inferred)
            .filter_map(|effect| match effect {
                Effect::Fetch { url } => {
                    crate::url::FetchTarget::parse(url).ok().map(|target| target.host_text())
                }
                Effect::Read { .. }
                | Effect::Write { .. }
                | Effect::Exec { .. }
                | Effect::Search { .. }
                | Effect::Delegate { .. }
                | Effect::Skill { .. }
                | Effect::Remote { .. }
                | Effect::Ask
                | Effect::State { .. }
                | Effect::Opaque => None,
            })
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        if hosts.is_empty() && !(runs && self.compiled.has_allowed_hosts) {
            NetworkAccess::None
        } else {
            NetworkAccess::Hosts(hosts)
        }
    }
}

impl PolicyObjection {
    fn step(&self) -> JudgementStep {
        JudgementStep {
            looked_at: self.check.as_str().into(),
            found: self.reason.text.clone().into(),
            action: Some(match self.kind {
                ObjectionKind::ByDefault | ObjectionKind::Explicit => RuleAction::Ask,
                ObjectionKind::Deny => RuleAction::Deny,
            }),
            rule: self.reason.rule.clone(),
        }
    }
}
