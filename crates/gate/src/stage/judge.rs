//! judge: what the call would do, what is really at its paths, and what policy says of that.

use super::screen::ScreenedCall;
use super::validate::Valid;
use crate::gate::Current;
use crate::scene::Scene;
use serde_json::{Map, Value};
use toolgate_os::{NamePattern, expand_pattern};
use toolgate_policy::{HookOpinion, IntentSurvey, Judgement, Policy, Request, ShellGlob};
use toolgate_proto::{Intent, JudgedAs, PathFact, PathFacts, Refusal, ToolIdentity, Workspace};

/// A call that policy has judged.
pub(crate) struct Judged {
    pub(crate) screened: ScreenedCall,
    pub(crate) intent: Intent,
    pub(crate) survey: IntentSurvey,
    pub(crate) facts: PathFacts,
    pub(crate) judgement: Judgement,
}

impl Judged {
    /// What was judged, for the terms that follow from it.
    pub(crate) fn request<'a>(&'a self, workspace: &'a Workspace) -> Request<'a> {
        Request {
            tool: self.screened.valid.identity(),
            input: self.screened.valid.input(),
            intent: &self.intent,
            survey: &self.survey,
            workspace,
            facts: &self.facts,
            opinions: &self.screened.opinions,
        }
    }

    pub(crate) fn as_recorded(&self) -> JudgedAs {
        JudgedAs {
            verdict: self.judgement.verdict.word().to_owned(),
            reason: self.judgement.verdict.reason().clone(),
            rights: self.judgement.rights.clone(),
        }
    }
}

/// What a call would do: all that policy judges.
#[derive(Debug, Clone)]
pub struct Intended {
    /// Which tool.
    pub tool: ToolIdentity,
    /// Its input.
    pub input: Map<String, Value>,
    /// What it would do.
    pub intent: Intent,
}

pub(crate) fn judge(current: &Current, scene: &Scene, screened: ScreenedCall) -> Result<Judged, Refusal> {
    let intent = intent_of(&screened.valid, scene);
    let (judgement, survey, facts) = decide(
        &current.policy,
        &scene.workspace,
        (screened.valid.identity(), screened.valid.input(), &intent),
        &screened.opinions,
        scene.consulted,
    );
    Ok(Judged { screened, intent, survey, facts, judgement })
}

pub(crate) fn intended(valid: &Valid, scene: &Scene) -> Intended {
    Intended { tool: valid.identity().clone(), input: valid.input().clone(), intent: intent_of(valid, scene) }
}

/// Judges something that would be done, under any policy. Nothing is run and nothing recorded, so this needs no gate.
pub fn judge_intended(policy: &Policy, workspace: &Workspace, intended: &Intended) -> Judgement {
    let Intended { tool, input, intent } = intended;
    decide(policy, workspace, (tool, input, intent), &[], false).0
}

fn intent_of(valid: &Valid, scene: &Scene) -> Intent {
    let mut intent = valid.prepared.intent(scene);
    if let Some(words) = valid.prepared.render_use() {
        intent.summary = words;
    }
    intent
}

/// A file with other names is judged under each of them, where all of them lie in the workspace.
fn other_names(fact: &mut PathFact, workspace: &Workspace) {
    if let Some(names) = toolgate_os::find_hard_links(&fact.real, &workspace.roots) {
        fact.links.extend(names);
        fact.hard_linked = false;
    }
}

/// A shell pattern, as the os matches it with names.
struct ShellGlobMatcher(ShellGlob);

impl NamePattern for ShellGlobMatcher {
    fn depth(&self) -> usize {
        self.0.depth()
    }

    fn literal(&self, depth: usize) -> Option<&str> {
        self.0.literal(depth)
    }

    fn fits(&self, depth: usize, name: &str) -> bool {
        self.0.fits(depth, name)
    }
}

fn decide(
    policy: &Policy,
    workspace: &Workspace,
    (tool, input, intent): (&ToolIdentity, &Map<String, Value>, &Intent),
    opinions: &[HookOpinion],
    consulted: bool,
) -> (Judgement, IntentSurvey, PathFacts) {
    let mut survey = policy.survey_call(input, intent, workspace);
    survey.only_spoken_of = consulted;
    let mut facts = PathFacts::none();
    for glob in &survey.globs {
        let matches = ShellGlob::parse(glob).and_then(|pattern| expand_pattern(&ShellGlobMatcher(pattern)));
        let Some(matches) = matches else { continue };
        for fact in toolgate_os::resolve_all(&matches) {
            facts.insert(fact);
        }
        facts.insert_glob(glob.clone(), matches);
    }
    for mut fact in toolgate_os::resolve_all(&survey.paths) {
        if fact.hard_linked && policy.is_written(&fact.asked, intent, &survey) {
            other_names(&mut fact, workspace);
        }
        facts.insert(fact);
    }
    let request = Request { tool, input, intent, survey: &survey, workspace, facts: &facts, opinions };
    (policy.decide(&request), survey, facts)
}
