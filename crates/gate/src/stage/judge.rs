//! judge: what the call would do, what is really at its paths, and what policy says of that.

use super::screen::Screened;
use super::validate::Valid;
use crate::gate::Current;
use crate::scene::Scene;
use serde_json::{Map, Value};
use toolgate_policy::{Judgement, Opinion, Policy, Request};
use toolgate_proto::{Facts, Intent, JudgedAs, Refusal, ToolIdentity, Workspace};

/// A call that policy has judged.
pub(crate) struct Judged {
    pub(crate) screened: Screened,
    pub(crate) intent: Intent,
    pub(crate) facts: Facts,
    pub(crate) judgement: Judgement,
}

impl Judged {
    pub(crate) fn as_recorded(&self) -> JudgedAs {
        JudgedAs {
            verdict: self.judgement.verdict.word().to_owned(),
            reason: self.judgement.verdict.reason().clone(),
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

pub(crate) fn judge(current: &Current, scene: &Scene, screened: Screened) -> Result<Judged, Refusal> {
    let intent = intent_of(&screened.valid, scene);
    let (judgement, facts) = decide(
        &current.policy,
        &scene.workspace,
        (screened.valid.identity(), screened.valid.input(), &intent),
        &screened.opinions,
    );
    Ok(Judged { screened, intent, facts, judgement })
}

pub(crate) fn intended(valid: &Valid, scene: &Scene) -> Intended {
    Intended { tool: valid.identity().clone(), input: valid.input().clone(), intent: intent_of(valid, scene) }
}

/// Judges something that would be done, under any policy. Nothing is run and nothing recorded, so this needs no gate.
pub fn judge_intended(policy: &Policy, workspace: &Workspace, intended: &Intended) -> Judgement {
    let Intended { tool, input, intent } = intended;
    decide(policy, workspace, (tool, input, intent), &[]).0
}

fn intent_of(valid: &Valid, scene: &Scene) -> Intent {
    let mut intent = valid.prepared.intent(scene);
    if let Some(words) = valid.prepared.render_use() {
        intent.summary = words;
    }
    intent
}

fn decide(
    policy: &Policy,
    workspace: &Workspace,
    (tool, input, intent): (&ToolIdentity, &Map<String, Value>, &Intent),
    opinions: &[Opinion],
) -> (Judgement, Facts) {
    let survey = policy.survey(intent, workspace);
    let mut facts = Facts::none();
    for path in &survey.paths {
        facts.insert(toolgate_os::resolve(path));
    }
    let judgement = policy.decide(&Request { tool, input, intent, workspace, facts: &facts, opinions });
    (judgement, facts)
}
