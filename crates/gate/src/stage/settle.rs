//! settle: an allow becomes a permit, a deny a refusal, and an ask a question to somebody.

use super::judge::Judged;
use super::screen::{Screened, unscreened};
use super::validate::{Valid, accept};
use crate::approve::{Answer, ApprovalRequest};
use crate::ledger::sha256_hex;
use crate::permit::Permit;
use crate::pipeline::Walk;
use futures_util::FutureExt;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::time::Instant;
use tokio::time::timeout;
use toolgate_policy::Policy;
use toolgate_proto::{Approval, Code, Event, Facts, Intent, Question, Reason, Refusal, Verdict};

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
            let (by, answer, micros) =
                ask(walk, &screened.valid, &question, judgement.flip.as_deref()).await?;
            let mut said = |answer: &str| {
                walk.trail.answered(Approval { by: by.clone(), answer: answer.to_owned(), micros });
            };
            match answer {
                Answer::Once => said("once"),
                Answer::Session { rule } => {
                    // Never more than what was shown: a rule that was not offered counts for this call only.
                    if question.suggestions.iter().any(|suggestion| suggestion.rule == rule) {
                        said("session");
                        walk.gate.grant(&rule, &walk.scene.workspace.cwd);
                    } else {
                        said("once");
                    }
                }
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
                Answer::Later => {
                    said("later");
                    let reason = format!("{}, so {by} was handed the question", question.reason);
                    return Err(Refusal::new(Code::ApprovalPending, reason));
                }
                // INVARIANT: `ask` turns a chain of passes into a refusal.
                Answer::Pass => return Err(Refusal::new(Code::NobodyToAsk, "nobody answered")),
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

async fn ask(
    walk: &Walk<'_>,
    valid: &Valid,
    question: &Question,
    flip: Option<&str>,
) -> Result<(String, Answer, u64), Refusal> {
    let input = valid.input().clone();
    let request = ApprovalRequest {
        id: toolgate_os::fresh_id("ask_"),
        call: walk.call.id.clone(),
        session: walk.scene.session.id().clone(),
        question: question.clone(),
        input_sha256: sha256_hex(Value::Object(input.clone()).to_string().as_bytes()),
        input,
        cancel: walk.cancel.child_token(),
    };
    walk.gate
        .audience
        .tell(|| Event::Asked { call: walk.call.id.clone(), question: Box::new(question.clone()) });
    let started = Instant::now();
    for approver in &walk.gate.approvers {
        let asking = AssertUnwindSafe(approver.ask(&request)).catch_unwind();
        let asking = timeout(walk.gate.approval_timeout, asking);
        let answer = match walk.within(async { Ok(asking.await) }).await? {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                return Err(Refusal::new(
                    Code::ApprovalLost,
                    format!("approver `{}` crashed, so the answer is no", approver.name()),
                ));
            }
            Err(_) => {
                request.cancel.cancel();
                return Err(Refusal::new(
                    Code::ApprovalTimedOut,
                    format!("`{}` gave no answer in time", approver.name()),
                ));
            }
        };
        match answer {
            Answer::Pass => {}
            Answer::Once
            | Answer::Session { .. }
            | Answer::Revise { .. }
            | Answer::No { .. }
            | Answer::Later => {
                let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
                return Ok((approver.name().to_owned(), answer, micros));
            }
        }
    }
    let refusal = Refusal::new(
        Code::NobodyToAsk,
        format!("{}, so a person must be asked, and nobody can be", question.reason),
    );
    Err(match flip {
        Some(flip) => refusal.hint(flip),
        None => refusal,
    })
}
