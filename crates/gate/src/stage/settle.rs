//! settle: an allow becomes a permit, a deny a refusal, and an ask a question to somebody.

use super::judge::Judged;
use super::screen::{Screened, unscreened};
use super::validate::{Valid, accept};
use crate::approve::{Answer, Answered, ask};
use crate::permit::Permit;
use crate::pipeline::Walk;
use toolgate_policy::Policy;
use toolgate_proto::{Approval, Code, Facts, Intent, Question, Reason, Refusal, Verdict};

/// A call that may run.
pub(crate) struct Granted {
    pub(crate) permit: Permit,
    pub(crate) valid: Valid,
    pub(crate) intent: Intent,
    pub(crate) facts: Facts,
}

pub(crate) enum Settled {
    Granted(Box<Granted>),
    /// The approver changed the input: judge it again.
    Revised(Screened),
}

pub(crate) async fn settle(walk: &mut Walk<'_>, judged: Judged) -> Result<Settled, Refusal> {
    let Judged { screened, intent, facts, judgement } = judged;
    let terms = match judgement.verdict {
        Verdict::Allow(terms) => terms,
        Verdict::Deny(reason) => {
            let mut refusal = Refusal::new(reason.code, reason.to_string());
            if let Some(flip) = judgement.flip {
                refusal.hint = flip;
            }
            return Err(refusal);
        }
        Verdict::Ask(question) => {
            let Answered { by, answer, micros } =
                ask(walk, &screened.valid, &intent, &question, judgement.flip.as_deref()).await?;
            let mut said = |answer: &str| {
                walk.trail.answered(Approval { by: by.clone(), answer: answer.to_owned(), micros });
            };
            match answer {
                Answer::Once => said("once"),
                Answer::Session { rules } => {
                    if offered(&question, &rules) {
                        said("session");
                        walk.gate.grant(&rules, &walk.scene.workspace.cwd);
                    } else {
                        said("once");
                    }
                }
                Answer::Always { rules } => {
                    if offered(&question, &rules) {
                        said("always");
                        keep(walk, &rules);
                    } else {
                        said("once");
                    }
                }
                // Whoever echoes the input approves it as it is.
                Answer::Revise { input } if input == *screened.valid.input() => said("once"),
                Answer::Revise { input } => {
                    said("revise");
                    walk.trail.note(|record| record.revisions.push(format!("approver: {by}")));
                    let valid = accept(screened.valid.tool, input)?;
                    walk.trail.read(valid.input());
                    walk.told = Some(super::finish::Told::about(&valid));
                    return Ok(Settled::Revised(Screened {
                        opinions: screened.opinions,
                        ..unscreened(valid)
                    }));
                }
                Answer::No { message } => {
                    said("no");
                    let refusal = Refusal::new(Code::Declined, format!("{by} said no"));
                    return Err(match message {
                        Some(message) => refusal.hint(message),
                        None => refusal,
                    });
                }
                // INVARIANT: `ask` turns a chain of passes and a lost channel into a refusal.
                Answer::Pass | Answer::Lost { .. } => {
                    return Err(Refusal::new(Code::NobodyToAsk, "nobody answered"));
                }
            }
            Policy::terms(
                &walk.scene.workspace,
                Reason { text: format!("{by} approved it"), ..question.reason.clone() },
            )
        }
    };
    let granted = Granted { permit: Permit::issue(terms), valid: screened.valid, intent, facts };
    Ok(Settled::Granted(Box::new(granted)))
}

/// Never more than what was shown: rules that were not offered count for this call only.
fn offered(question: &Question, rules: &[String]) -> bool {
    let shown = |rule: &String| question.suggestions.iter().any(|suggestion| suggestion.rule == *rule);
    !rules.is_empty() && rules.iter().all(shown)
}

/// Keeps rules for good, and counts them at once. Where they cannot be kept, the session remembers them.
fn keep(walk: &mut Walk<'_>, rules: &[String]) {
    let workspace = &walk.scene.workspace;
    let kept = match &walk.gate.keeper {
        Some(keeper) => keeper.keep(rules, workspace),
        None => Err("there is nowhere to keep it".to_owned()),
    };
    walk.gate.grant(rules, &workspace.cwd);
    walk.messages.push(match kept {
        Ok(place) => format!("remembered in {place}; `toolgate grants` lists and revokes"),
        Err(problem) => format!("this counts for the session only: {problem}"),
    });
}
