//! The order of judgement.

use crate::facts::{EntryKind, Facts, Workspace};
use crate::judgement::{Judgement, Opinion, Step};
use crate::raw::{Action, Problem, RawPolicy, Weight};
use crate::rule::Rule;
use serde_json::{Map, Value};
use toolgate_proto::{
    AbsPath, Code, Effect, Intent, Mode, Network, Question, Reason, Severity, Terms, ToolIdentity, Verdict,
};

/// Everything there is to judge about one call.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Which tool.
    pub tool: &'a ToolIdentity,
    /// Its validated input, for rules on parameters.
    pub input: &'a Map<String, Value>,
    /// What it would do.
    pub intent: &'a Intent,
    /// Where the session works.
    pub workspace: &'a Workspace,
    /// What is really at the paths that [`Policy::survey`] named.
    pub facts: &'a Facts,
    /// What hooks think.
    pub opinions: &'a [Opinion],
}

/// What must be found out before a call can be judged.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// The paths about which facts are needed.
    pub paths: Vec<AbsPath>,
}

/// Compiled rules and a mode. Built by [`RawPolicy::compile`].
#[derive(Debug, Clone)]
pub struct Policy {
    rules: Vec<Rule>,
    mode: Mode,
    /// Set when a rule that would deny cannot be read.
    unusable: Option<Reason>,
}

impl Policy {
    pub(crate) fn compile(raw: RawPolicy) -> (Self, Vec<Problem>) {
        let mut policy = Self { rules: Vec::new(), mode: raw.mode, unusable: None };
        let mut problems = Vec::new();
        for layer in &raw.layers {
            for (action, rules) in
                [(Action::Deny, &layer.deny), (Action::Ask, &layer.ask), (Action::Allow, &layer.allow)]
            {
                for rule in rules {
                    match Rule::parse(layer, action, rule) {
                        Ok(rule) => policy.rules.push(rule),
                        Err(problem) => problems.push(problem),
                    }
                }
            }
        }
        policy.unusable = problems.iter().find(|problem| problem.weight == Weight::Fatal).map(|problem| {
            Reason::new(Code::UnusablePolicy, problem.message.clone()).by(problem.rule.clone())
        });
        (policy, problems)
    }

    /// The mode in force.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether a rule denies every call of this tool, so that it need not be shown to a model at all.
    pub fn hides(&self, tool: &ToolIdentity) -> bool {
        self.rules.iter().any(|rule| rule.action == Action::Deny && rule.matches(tool))
    }

    /// Names the paths whose facts [`Policy::decide`] will want.
    pub fn survey(&self, intent: &Intent, _workspace: &Workspace) -> Survey {
        let paths = intent
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Read { path, .. } | Effect::Write { path, .. } => Some(path.clone()),
                Effect::Exec { .. }
                | Effect::Fetch { .. }
                | Effect::Search { .. }
                | Effect::Delegate { .. }
                | Effect::Skill { .. }
                | Effect::Remote { .. }
                | Effect::Ask
                | Effect::State { .. }
                | Effect::Opaque => None,
            })
            .collect();
        Survey { paths }
    }

    /// Judges a call.
    pub fn decide(&self, request: &Request<'_>) -> Judgement {
        let mut steps = Vec::new();
        let verdict = self.verdict(request, &mut steps);
        let flip = match &verdict {
            Verdict::Allow(_) | Verdict::Deny(_) => None,
            Verdict::Ask(_) => Some(format!("add the allow rule `{}`", request.tool.name)),
        };
        Judgement { verdict, risk: risk_of(request.intent), steps, flip }
    }

    fn verdict(&self, request: &Request<'_>, steps: &mut Vec<Step>) -> Verdict {
        if let Some(reason) = &self.unusable {
            steps.push(step("rules", "a rule that would deny cannot be read", Some(Action::Deny)));
            return Verdict::Deny(reason.clone());
        }
        if let Some(rule) = self.first(Action::Deny, request.tool) {
            steps.push(rule_step("deny rules", rule));
            return Verdict::Deny(
                Reason::new(Code::DeniedByRule, format!("`{}` is denied", request.tool.name))
                    .by(rule.reference.clone()),
            );
        }
        steps.push(step("deny rules", "none matches", None));
        if self.mode == Mode::Deny {
            steps.push(step("mode deny", "nothing runs", Some(Action::Deny)));
            return Verdict::Deny(Reason::new(Code::DeniedByMode, "mode deny lets nothing run"));
        }
        for opinion in request.opinions.iter().filter(|opinion| opinion.action == Action::Deny) {
            steps.push(step("hooks", "a hook denies", Some(Action::Deny)));
            return Verdict::Deny(Reason::new(Code::HookDenied, format!("hook {} denies", opinion.by)));
        }
        if let Some(rule) = self.first(Action::Ask, request.tool) {
            steps.push(rule_step("ask rules", rule));
            return self.ask(
                request,
                Reason::new(Code::NobodyToAsk, "a rule wants a person to be asked")
                    .by(rule.reference.clone()),
                true,
            );
        }
        steps.push(step("ask rules", "none matches", None));
        if request.tool.requires_interaction {
            return self.ask(request, Reason::new(Code::NobodyToAsk, "the tool needs a person"), true);
        }
        for opinion in request.opinions.iter().filter(|opinion| opinion.action == Action::Ask) {
            steps.push(step("hooks", "a hook asks", Some(Action::Ask)));
            return self.ask(
                request,
                Reason::new(Code::NobodyToAsk, format!("hook {} wants a person to be asked", opinion.by)),
                true,
            );
        }
        if self.mode == Mode::Bypass {
            steps.push(step("mode bypass", "asks by default are skipped", Some(Action::Allow)));
            return self.allow(request, Reason::new(Code::DeniedByMode, "mode bypass"));
        }
        let changes = !reads_only_inside(request);
        if let Some(rule) = self.first(Action::Allow, request.tool)
            && !(self.mode == Mode::Plan && changes)
        {
            steps.push(rule_step("allow rules", rule));
            return self.allow(
                request,
                Reason::new(Code::DeniedByRule, "a rule allows it").by(rule.reference.clone()),
            );
        }
        steps.push(step("allow rules", "none matches", None));
        if !changes {
            steps.push(step("effects", "reads inside the workspace are free", Some(Action::Allow)));
            return self
                .allow(request, Reason::new(Code::DeniedByRule, "it only reads inside the workspace"));
        }
        for opinion in request.opinions.iter().filter(|opinion| opinion.action == Action::Allow) {
            steps.push(step("hooks", "a hook answers the default question", Some(Action::Allow)));
            return self
                .allow(request, Reason::new(Code::DeniedByRule, format!("hook {} allows", opinion.by)));
        }
        steps.push(step("default", "no rule speaks of it", Some(Action::Ask)));
        self.ask(request, Reason::new(Code::NobodyToAsk, "no rule allows it"), false)
    }

    fn first(&self, action: Action, tool: &ToolIdentity) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.action == action && rule.matches(tool))
    }

    fn allow(&self, request: &Request<'_>, reason: Reason) -> Verdict {
        Verdict::Allow(Self::terms(request.workspace, reason))
    }

    /// The terms of a run that was allowed, or that a person approved.
    pub fn terms(workspace: &Workspace, reason: Reason) -> Terms {
        Terms {
            reason,
            unsandboxed: false,
            writable: workspace.roots.clone(),
            protected: Vec::new(),
            unreadable: Vec::new(),
            network: Network::None,
        }
    }

    /// The one place where a question becomes a denial in mode `dontAsk`.
    fn ask(&self, request: &Request<'_>, reason: Reason, explicit: bool) -> Verdict {
        if self.mode == Mode::DontAsk {
            let text = format!("{}, and mode dontAsk does not ask", reason.text);
            return Verdict::Deny(Reason { text, code: Code::DeniedByMode, rule: reason.rule });
        }
        Verdict::Ask(Question {
            tool: request.tool.name.clone(),
            description: request.intent.summary.clone(),
            risk: risk_of(request.intent),
            effects: request.intent.effects.clone(),
            locations: request.intent.locations(),
            warnings: Vec::new(),
            reason,
            suggestions: Vec::new(),
            explicit,
        })
    }
}

fn reads_only_inside(request: &Request<'_>) -> bool {
    request.intent.effects.iter().all(|effect| match effect {
        Effect::Read { path, .. } => request.facts.get(path).is_some_and(|fact| {
            fact.problem.is_none()
                && fact.kind != EntryKind::Special
                && request.workspace.roots.iter().any(|root| fact.real.is_under(root))
        }),
        Effect::Write { .. }
        | Effect::Exec { .. }
        | Effect::Fetch { .. }
        | Effect::Search { .. }
        | Effect::Delegate { .. }
        | Effect::Skill { .. }
        | Effect::Remote { .. }
        | Effect::Ask
        | Effect::State { .. }
        | Effect::Opaque => false,
    })
}

fn risk_of(intent: &Intent) -> Severity {
    intent
        .effects
        .iter()
        .map(|effect| match effect {
            Effect::Read { .. } | Effect::Ask | Effect::State { .. } => Severity::Low,
            Effect::Write { .. } | Effect::Search { .. } | Effect::Fetch { .. } | Effect::Skill { .. } => {
                Severity::Medium
            }
            Effect::Exec { .. } | Effect::Delegate { .. } | Effect::Remote { .. } | Effect::Opaque => {
                Severity::High
            }
        })
        .max()
        .unwrap_or(Severity::Low)
}

fn step(looked_at: &str, found: &str, action: Option<Action>) -> Step {
    Step { looked_at: looked_at.to_owned(), found: found.to_owned(), action, rule: None }
}

fn rule_step(looked_at: &str, rule: &Rule) -> Step {
    Step {
        looked_at: looked_at.to_owned(),
        found: format!("`{}` matches", rule.reference.text),
        action: Some(rule.action),
        rule: Some(rule.reference.clone()),
    }
}
