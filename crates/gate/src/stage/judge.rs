//! judge: what the call would do, what is really at its paths, and what policy says of that.

use super::screen::Screened;
use crate::gate::Current;
use crate::scene::Scene;
use toolgate_policy::{Judgement, Request};
use toolgate_proto::{Facts, Intent, JudgedAs, Refusal};

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

pub(crate) fn judge(current: &Current, scene: &Scene, screened: Screened) -> Result<Judged, Refusal> {
    let mut intent = screened.valid.prepared.intent(scene);
    if let Some(words) = screened.valid.prepared.render_use() {
        intent.summary = words;
    }
    let survey = current.policy.survey(&intent, &scene.workspace);
    let mut facts = Facts::none();
    for path in &survey.paths {
        facts.insert(toolgate_os::resolve(path));
    }
    let judgement = current.policy.decide(&Request {
        tool: screened.valid.identity(),
        input: screened.valid.input(),
        intent: &intent,
        workspace: &scene.workspace,
        facts: &facts,
        opinions: &screened.opinions,
    });
    Ok(Judged { screened, intent, facts, judgement })
}
