//! The state of one decision: the objections that the checks raise, the reasons to allow, and their conclusion.
//!
//! Checks never return early with a verdict. Each adds its objections to [`PolicyEvaluation`], and
//! [`PolicyEvaluation::conclude`] picks the strictest at the end. A first-match loop would be shorter, but it would
//! make the order of the checks a security property, and it could not explain what else was found.

use super::objection::{ObjectionKind, ObjectionRemedy, PolicyCheck, PolicyObjection};
use super::rights::RightsBasis;
use crate::advice::SettingsAdvice;
use crate::compile::CompiledPolicy;
use crate::decide::PolicyRequest;
use crate::fold::fold_path;
use crate::judgement::{CommandVerdict, Judgement, JudgementStep};
use crate::raw::RuleAction;
use crate::rule::path::BaseDirectories;
use std::borrow::Cow;
use std::fmt;
use toolgate_proto::{
    AbsPath, Code, GitTerms, Mode, RiskLevel, RiskWarning, RuleRef, RuleSuggestion, Verdict, VerdictReason,
    escape_invisible,
};

/// One call while it is judged.
pub(crate) struct PolicyEvaluation<'r> {
    /// The rules in force.
    pub(crate) compiled: &'r CompiledPolicy,
    /// The mode in force.
    pub(crate) mode: Mode,
    /// The call.
    pub(crate) request: &'r PolicyRequest<'r>,
    /// The base directories of allow patterns, spelled exactly.
    pub(crate) exact: BaseDirectories<'r>,
    /// The base directories of deny and ask patterns, folded.
    pub(crate) folded: BaseDirectories<'r>,
    /// Everything that speaks against the call, in the order found.
    pub(crate) objections: Vec<PolicyObjection>,
    /// Why effects of the call are allowed, in the order found, each with the rule that allows it.
    pub(crate) allow_reasons: Vec<(Cow<'static, str>, Option<u32>)>,
    /// Dangers that an approver is shown beside the question.
    pub(crate) warnings: Vec<RiskWarning>,
    /// The verdict about each simple command checked so far.
    pub(crate) parts: Vec<CommandVerdict>,
    /// What allows every use of the tool, if anything does.
    pub(crate) grant: Option<ToolWideGrant>,
    /// The simple command being checked skips names that begin with a dot.
    pub(crate) skips_hidden: bool,
    /// How git is used in the command lines checked so far.
    pub(crate) git: GitTerms,
    /// The worst danger that the analysis of a command reported.
    pub(crate) danger: Option<RiskLevel>,
    /// A command is covered by a rule, or by nothing: its effects are not fully known, so its rights are those of the
    /// workspace.
    pub(crate) covered_as_whole: bool,
    /// A mode or a hook allowed what nothing else covers. That makes nothing outside the workspace writable.
    pub(crate) answered_by_default: bool,
    /// The command line being checked uses only the plain subset of bash syntax.
    pub(crate) plain_syntax: bool,
}

/// What allows every use of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolWideGrant {
    /// A rule that consists of the tool's name, by its position in [`CompiledPolicy::rules`].
    Rule(u32),
    /// The policy book.
    Book,
}

impl<'r> PolicyEvaluation<'r> {
    /// An evaluation without objections.
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
            grant: None,
            skips_hidden: false,
            git: GitTerms::default(),
            danger: None,
            covered_as_whole: false,
            answered_by_default: false,
            plain_syntax: false,
        }
    }

    /// Runs every check.
    pub(crate) fn check_everything(&mut self) {
        self.check_call();
        for effect in &self.request.intent.effects {
            self.check_effect(effect);
        }
    }

    /// Whether the same call would be allowed if these were allow rules as well.
    pub(crate) fn is_allowed_with<'s>(&self, rules: impl Iterator<Item = &'s str>) -> bool {
        let compiled = self.compiled.with_allow_rules(rules);
        let mut trial = PolicyEvaluation::new(&compiled, self.mode, self.request);
        trial.check_everything();
        trial.objections.is_empty()
    }

    /// Records an objection of any kind.
    pub(crate) fn add_objection(&mut self, kind: ObjectionKind, check: PolicyCheck, reason: VerdictReason) {
        self.objections.push(PolicyObjection::new(kind, check, reason));
    }

    /// Says what would remove the objection that was raised last. A rule with invisible characters is no remedy: what a
    /// message shows of it is not what has to be written, and its reader cannot see what it allows.
    pub(crate) fn set_remedy(&mut self, remedy: ObjectionRemedy) {
        let is_unreadable = match &remedy {
            ObjectionRemedy::AllowRules(rules) => rules.iter().any(|rule| is_unreadable(&rule.rule)),
            ObjectionRemedy::LineRule(rule) => is_unreadable(rule),
            ObjectionRemedy::Rule
            | ObjectionRemedy::Mode
            | ObjectionRemedy::Setting(_)
            | ObjectionRemedy::SettingAndUser(_)
            | ObjectionRemedy::Command(_)
            | ObjectionRemedy::Hook
            | ObjectionRemedy::User
            | ObjectionRemedy::NoRule(_) => false,
        };
        let remedy = match is_unreadable {
            true => ObjectionRemedy::NoRule("it would contain invisible characters".to_owned()),
            false => remedy,
        };
        if let Some(objection) = self.objections.last_mut() {
            objection.remedy = remedy;
        }
    }

    /// An objection that names the rule behind it.
    pub(crate) fn add_rule_objection(
        &mut self,
        kind: ObjectionKind,
        check: PolicyCheck,
        code: Code,
        text: String,
        rule: u32,
    ) {
        let reason = VerdictReason::new(code, text).with_rule(self.compiled.reference(rule));
        self.add_objection(kind, check, reason);
    }

    /// A deny rule matches.
    pub(crate) fn deny_by_rule(&mut self, text: String, rule: u32) {
        self.add_rule_objection(ObjectionKind::Deny, PolicyCheck::DenyRules, Code::DeniedByRule, text, rule);
    }

    /// An ask rule matches. `what` completes "a rule requires approval for …".
    pub(crate) fn ask_by_rule(&mut self, what: fmt::Arguments<'_>, rule: u32) {
        let text = format!("a rule requires approval for {what}");
        self.add_rule_objection(
            ObjectionKind::Explicit,
            PolicyCheck::AskRules,
            Code::ApprovalUnavailable,
            text,
            rule,
        );
    }

    /// A risk that only an approver may accept.
    pub(crate) fn ask_about_risk(&mut self, kind: ObjectionKind, text: String) {
        self.add_objection(kind, PolicyCheck::Risks, VerdictReason::new(Code::ApprovalUnavailable, text));
    }

    /// A write to a protected path: no allow rule covers it.
    pub(crate) fn ask_about_protected(&mut self, text: String) {
        let reason = VerdictReason::new(Code::ProtectedPath, text);
        self.add_objection(ObjectionKind::Explicit, PolicyCheck::Protected, reason);
    }

    /// In mode plan every change asks, whatever rules and hooks allow. `what` is formatted only in that mode.
    pub(crate) fn ask_in_plan_mode(&mut self, what: fmt::Arguments<'_>) {
        if self.mode == Mode::Plan {
            let reason =
                VerdictReason::new(Code::DeniedByMode, format!("{what}, and mode plan allows only reading"));
            self.add_objection(ObjectionKind::Explicit, PolicyCheck::Mode, reason);
        }
    }

    /// Nothing covers an effect. `suggestion` is a rule that would.
    pub(crate) fn add_uncovered_objection(
        &mut self,
        text: impl Into<String>,
        suggestion: Option<RuleSuggestion>,
    ) {
        self.add_objection(
            ObjectionKind::ByDefault,
            PolicyCheck::Grants,
            VerdictReason::new(Code::ApprovalUnavailable, text),
        );
        if let Some(suggestion) = suggestion {
            self.set_remedy(ObjectionRemedy::AllowRules(vec![suggestion]));
        }
    }

    /// Records why an effect is allowed. The first such reason becomes that of an allow verdict.
    pub(crate) fn add_allow_reason(&mut self, text: impl Into<Cow<'static, str>>, rule: Option<u32>) {
        self.allow_reasons.push((text.into(), rule));
    }

    /// Records that the tool as a whole is allowed.
    pub(crate) fn add_grant_reason(&mut self, grant: ToolWideGrant) {
        match grant {
            ToolWideGrant::Rule(id) => self.add_allow_reason("a rule allows the tool", Some(id)),
            ToolWideGrant::Book => self.add_allow_reason("the policy book allows the tool", None),
        }
    }

    /// Records a danger for the approver. `kind` is a stable name for programs, `text` is for users.
    pub(crate) fn add_warning(&mut self, kind: &str, severity: RiskLevel, text: String) {
        self.warnings.push(RiskWarning::new(kind, severity, text));
    }

    /// Whether the settings deny dangers of this severity instead of asking about them.
    fn denies_danger(&self, severity: RiskLevel) -> bool {
        self.compiled.deny_dangers_from.is_some_and(|from| severity >= from)
    }

    /// A danger that asks whatever rules allow, if `asks`, or is denied where the settings deny such a severity.
    pub(crate) fn object_to_danger(&mut self, severity: RiskLevel, text: String, asks: bool) {
        if !self.denies_danger(severity) {
            if asks {
                let reason = VerdictReason::new(Code::DangerousCall, text);
                self.add_objection(ObjectionKind::Explicit, PolicyCheck::Dangers, reason);
            }
            return;
        }
        let place = self.compiled.raw.setting_places.clause("permissions.riskProfile");
        let text = format!("{text}, and `permissions.riskProfile`{place} denies such a danger");
        let reason = VerdictReason::new(Code::DangerousCall, text);
        self.add_objection(ObjectionKind::Deny, PolicyCheck::Dangers, reason);
        let change = format!(
            "remove or raise `permissions.riskProfile`{place}, which denies such a danger instead of asking"
        );
        self.set_remedy(match asks {
            true => ObjectionRemedy::SettingAndUser(change),
            false => ObjectionRemedy::Setting(change),
        });
    }

    /// The reference to a rule that messages show.
    pub(crate) fn reference(&self, id: u32) -> Option<RuleRef> {
        self.compiled.reference(id)
    }

    /// Turns all objections into one judgement: the strictest objection decides, and a call without any is allowed.
    pub(crate) fn conclude(mut self) -> Judgement {
        let decisive = self.decisive_objection();
        let mut steps = self.steps(decisive);
        let decisive = decisive.and_then(|at| self.objections.get(at).cloned());
        let risk = self.risk();
        let advice = if decisive.is_some() { self.advise_changes() } else { SettingsAdvice::default() };
        let mut is_answered = false;
        let verdict = match decisive {
            None => self.allow(&mut steps),
            Some(objection) => match objection.kind {
                ObjectionKind::Deny => Verdict::Deny(objection.reason),
                ObjectionKind::Explicit => self.ask_question(objection, Vec::new()),
                ObjectionKind::ByDefault => match self.answer_by_default(&mut steps) {
                    Some(reason) => {
                        self.answered_by_default = true;
                        is_answered = true;
                        Verdict::Allow(self.terms(reason, RightsBasis::ByEffects))
                    }
                    None => {
                        let suggestions = self.suggestions();
                        self.ask_question(objection, suggestions)
                    }
                },
            },
        };
        let advice = if is_answered { SettingsAdvice::default() } else { advice };
        let flip = advice.to_sentence(&self.compiled.raw);
        let rights = match &verdict {
            Verdict::Allow(terms) => Some(terms.rights.clone()),
            Verdict::Ask(_) => Some(self.rights(RightsBasis::AsWhole)),
            Verdict::Deny(_) => None,
        };
        let rights = rights.filter(|_| !self.request.survey.commands.is_empty());
        let inferred = self.request.survey.distinct_effects();
        Judgement { verdict, risk, steps, parts: self.parts, inferred, flip, advice, rights }
    }

    /// The position of the strictest objection; of equally strict ones the earliest check, and there the first raised.
    fn decisive_objection(&self) -> Option<usize> {
        let objections = self.objections.iter().enumerate();
        let decisive = objections.max_by(|(left, a), (right, b)| {
            a.kind.cmp(&b.kind).then(b.check.cmp(&a.check)).then(right.cmp(left))
        });
        decisive.map(|(at, _)| at)
    }

    /// The verdict of a call without objections. The last step then shows why it is allowed.
    fn allow(&self, steps: &mut [JudgementStep]) -> Verdict {
        let (text, rule) =
            self.allow_reasons.first().cloned().unwrap_or(("the call has no effects".into(), None));
        let rule = rule.and_then(|id| self.reference(id));
        let reason = VerdictReason::allowing(text).with_rule(rule);
        if let Some(step) = steps.last_mut() {
            step.found = reason.text.clone().into();
            step.action = Some(RuleAction::Allow);
            step.rule.clone_from(&reason.rule);
        }
        Verdict::Allow(self.terms(reason, RightsBasis::ByEffects))
    }

    /// Whether mode bypass or a hook allows what would ask by default.
    fn answer_by_default(&self, steps: &mut Vec<JudgementStep>) -> Option<VerdictReason> {
        let (looked_at, text) = match self.mode {
            Mode::Bypass => ("mode bypass", "mode bypass allows what would ask by default".to_owned()),
            Mode::Default | Mode::Plan | Mode::AcceptEdits | Mode::DontAsk | Mode::Deny => {
                let opinion =
                    self.request.opinions.iter().find(|opinion| opinion.action == RuleAction::Allow)?;
                ("hooks", format!("hook `{}` allows what would ask by default", opinion.by))
            }
        };
        steps.push(JudgementStep {
            looked_at: looked_at.into(),
            found: text.clone().into(),
            action: Some(RuleAction::Allow),
            rule: None,
        });
        Some(VerdictReason::allowing(text))
    }

    /// Every check up to the one that decided; the step that decided comes last.
    fn steps(&self, decisive: Option<usize>) -> Vec<JudgementStep> {
        let decisive = decisive.and_then(|at| Some((at, self.objections.get(at)?)));
        let last = decisive.map_or(PolicyCheck::Grants, |(_, objection)| objection.check);
        let mut steps = Vec::with_capacity(10);
        for check in PolicyCheck::ALL.into_iter().filter(|check| *check <= last) {
            let raised = self.objections.iter().enumerate().filter(|(_, objection)| objection.check == check);
            let mut is_silent = true;
            for (at, objection) in raised {
                is_silent = false;
                if decisive.is_none_or(|(decisive, _)| decisive != at) {
                    steps.push(objection.step());
                }
            }
            if is_silent {
                let (looked_at, found) = (check.as_str().into(), check.no_objection_text().into());
                steps.push(JudgementStep { looked_at, found, action: None, rule: None });
            }
        }
        steps.extend(decisive.map(|(_, objection)| objection.step()));
        steps
    }
}

/// Whether a text contains characters that messages escape.
fn is_unreadable(text: &str) -> bool {
    escape_invisible(text) != text
}
