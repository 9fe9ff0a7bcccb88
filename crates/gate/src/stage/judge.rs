//! judge: the effects of the call, the facts about its paths, and the verdict of policy.

use super::screen::ScreenedCall;
use super::validate::ValidatedCall;
use crate::call_context::{CallContext, CallPolicy, PipelineContext};
use serde_json::{Map, Value};
use toolgate_files::{ComponentPattern, expand_pattern};
use toolgate_policy::{HookOpinion, IntentSurvey, Judgement, Policy, PolicyRequest, ShellGlob};
use toolgate_proto::{Intent, PathFact, PathFacts, ToolIdentity, VerdictRecord, Workspace};

/// A call that policy has judged.
pub(crate) struct JudgedCall {
    pub(crate) screened: ScreenedCall,
    pub(crate) intent: Intent,
    pub(crate) survey: IntentSurvey,
    pub(crate) facts: PathFacts,
    pub(crate) judgement: Judgement,
    /// The policy that judged it.
    pub(crate) policy: CallPolicy,
}

impl JudgedCall {
    /// What was judged, for the terms that follow from it.
    pub(crate) fn request<'a>(&'a self, workspace: &'a Workspace) -> PolicyRequest<'a> {
        PolicyRequest {
            tool: self.screened.valid.identity(),
            input: self.screened.valid.input(),
            intent: &self.intent,
            survey: &self.survey,
            workspace,
            facts: &self.facts,
            opinions: &self.screened.opinions,
        }
    }

    /// The verdict as the record keeps it.
    pub(crate) fn to_record(&self) -> VerdictRecord {
        VerdictRecord::new(&self.judgement.verdict).with_rights(self.judgement.rights.clone())
    }
}

/// What a call would do: all that policy judges.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IntendedCall {
    /// Which tool.
    pub tool: ToolIdentity,
    /// Its input.
    pub input: Map<String, Value>,
    /// What it would do.
    pub intent: Intent,
}

impl IntendedCall {
    /// Creates a call with the intent of its tool.
    pub fn new(tool: ToolIdentity, input: Map<String, Value>, intent: Intent) -> Self {
        Self { tool, input, intent }
    }
}

/// Judges a screened call: its intent, facts about the real files, rules, mode and the opinions of hooks.
pub(crate) fn judge(context: &PipelineContext<'_>, policy: CallPolicy, screened: ScreenedCall) -> JudgedCall {
    let intent = intent_of(&screened.valid, &context.call_context);
    let call = (screened.valid.identity(), screened.valid.input(), &intent);
    let CallContext { workspace, .. } = &context.call_context;
    let quotes_call = context.call_context.is_consultation();
    let (judgement, survey, facts) =
        decide(&policy.effective, workspace, call, &screened.opinions, quotes_call);
    JudgedCall { screened, intent, survey, facts, judgement, policy }
}

/// A validated call with the effects that it would have.
pub(crate) fn intended_call(valid: &ValidatedCall, context: &CallContext) -> IntendedCall {
    IntendedCall {
        tool: valid.identity().clone(),
        input: valid.input().clone(),
        intent: intent_of(valid, context),
    }
}

/// Judges a call under any policy. Nothing runs and nothing is recorded, so this needs no gate.
pub fn judge_intended(policy: &Policy, workspace: &Workspace, intended: &IntendedCall) -> Judgement {
    let IntendedCall { tool, input, intent } = intended;
    let (mut judgement, _, _) = decide(policy, workspace, (tool, input, intent), &[], false);
    judgement.note_unasked_hooks(&[]);
    judgement
}

/// The intent of a call, with the summary that the tool has for this input.
fn intent_of(valid: &ValidatedCall, context: &CallContext) -> Intent {
    let mut intent = valid.prepared.intent(context);
    if let Some(words) = valid.prepared.render_use() {
        intent.summary = words;
    }
    intent
}

/// A file with several hard links is judged under each name, where all of them are in the workspace.
fn add_hard_links(fact: &mut PathFact, workspace: &Workspace) {
    if let Some(names) = toolgate_files::find_hard_links(&fact.real, &workspace.roots) {
        fact.links.extend(names);
        fact.hard_linked = false;
    }
}

/// A shell pattern, for matching directory entries.
struct ShellGlobMatcher(ShellGlob);

impl ComponentPattern for ShellGlobMatcher {
    fn depth(&self) -> usize {
        self.0.depth()
    }

    fn literal(&self, depth: usize) -> Option<&str> {
        self.0.literal(depth)
    }

    fn matches(&self, depth: usize, name: &str) -> bool {
        self.0.matches_name(depth, name)
    }
}

/// Surveys the intent, resolves the paths that the survey names, and lets policy decide.
fn decide(
    policy: &Policy,
    workspace: &Workspace,
    (tool, input, intent): (&ToolIdentity, &Map<String, Value>, &Intent),
    opinions: &[HookOpinion],
    ignores_input_paths: bool,
) -> (Judgement, IntentSurvey, PathFacts) {
    let mut survey = policy.survey_call(input, intent, workspace);
    survey.ignores_input_paths = ignores_input_paths;
    let mut facts = PathFacts::none();
    for glob in &survey.globs {
        let matches = ShellGlob::parse(glob).and_then(|pattern| expand_pattern(&ShellGlobMatcher(pattern)));
        let Some(matches) = matches else { continue };
        for fact in toolgate_files::resolve_all(&matches) {
            facts.insert(fact);
        }
        facts.insert_glob(glob.clone(), matches);
    }
    for mut fact in toolgate_files::resolve_all(&survey.paths) {
        if fact.hard_linked && policy.is_written(&fact.asked, intent, &survey) {
            add_hard_links(&mut fact, workspace);
        }
        facts.insert(fact);
    }
    let request = PolicyRequest { tool, input, intent, survey: &survey, workspace, facts: &facts, opinions };
    (policy.decide(&request), survey, facts)
}
