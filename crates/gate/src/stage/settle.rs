//! settle: an allow becomes a permit, a deny a refusal, and an ask a question to somebody.

use super::judge::Judged;
use super::screen::Screened;
use super::validate::{Valid, accept};
use crate::approve::{Answer, ApprovalRequest};
use crate::ledger::sha256_hex;
use crate::permit::Permit;
use crate::pipeline::Walk;
use futures_util::FutureExt;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::time::Instant;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;
use toolgate_proto::{Approval, Code, Event, Facts, Intent, Question, Reason, Refusal, Terms, Verdict};

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
    /// The rules changed while another question was being asked: judge it again, this one may be answered.
    Overtaken(Box<Screened>),
}

/// Whoever holds this has the person's ear. A person is asked one question at a time in each session.
#[derive(Default)]
pub(crate) struct Ear(Mutex<()>);

impl Ear {
    /// Waits until nobody else is asking. True if somebody was.
    pub(crate) async fn get(&self) -> (MutexGuard<'_, ()>, bool) {
        match self.0.try_lock() {
            Ok(ear) => (ear, false),
            Err(_) => (self.0.lock().await, true),
        }
    }
}

pub(crate) async fn settle(walk: &mut Walk<'_>, judged: Judged) -> Result<Settled, Refusal> {
    let settled = match judged.judgement.verdict.clone() {
        Verdict::Allow(terms) => granted(judged, terms),
        Verdict::Deny(reason) => {
            let refusal = Refusal::new(reason.code, reason.to_string());
            return Err(with_hint(refusal, judged.judgement.flip.as_deref()));
        }
        Verdict::Ask(question) => {
            if let Some(turn) = &mut walk.turn {
                turn.stand_aside();
            }
            let ear = walk.scene.session.state::<Ear>();
            let (held, waited) = walk.within(async { Ok(ear.get().await) }).await?;
            if waited && walk.catch_up() {
                return Ok(Settled::Overtaken(Box::new(judged.screened)));
            }
            let flip = judged.judgement.flip.as_deref();
            let answered = ask(walk, &judged.screened.valid, &question, flip).await?;
            drop(held);
            obey(walk, judged, &question, answered)?
        }
    };
    if matches!(settled, Settled::Granted(_)) {
        walk.sit_down().await?;
    }
    Ok(settled)
}

fn granted(judged: Judged, terms: Terms) -> Settled {
    let Judged { screened, intent, facts, .. } = judged;
    Settled::Granted(Box::new(Granted { permit: Permit::issue(terms), valid: screened.valid, intent, facts }))
}

/// Does what somebody answered.
fn obey(
    walk: &mut Walk<'_>,
    judged: Judged,
    question: &Question,
    Answered { by, answer, micros }: Answered,
) -> Result<Settled, Refusal> {
    let mut said = |answer: &str| {
        walk.trail.answered(Approval { by: by.clone(), answer: answer.to_owned(), micros });
    };
    match answer {
        Answer::Once => said("once"),
        // Never more than what was shown: a rule that was not offered counts for this call only.
        Answer::Session { rule } if question.suggestions.iter().any(|offered| offered.rule == rule) => {
            said("session");
            walk.gate.grant(&rule, &walk.scene.workspace.cwd);
        }
        Answer::Session { .. } => said("once"),
        Answer::Revise { input } => {
            said("revise");
            walk.trail.note(|record| record.revisions.push(format!("approver: {by}")));
            let valid = accept(judged.screened.valid.tool, input)?;
            walk.trail.read(valid.input());
            walk.told = Some(super::finish::Told::about(&valid, walk.gate));
            return Ok(Settled::Revised(Screened { valid, opinions: judged.screened.opinions }));
        }
        Answer::No { message } => {
            said("no");
            let refusal = Refusal::new(Code::Declined, format!("{by} said no"));
            return Err(with_hint(refusal, message.as_deref()));
        }
        Answer::Later => {
            said("later");
            let reason = format!("{}, so {by} was handed the question", question.reason);
            return Err(Refusal::new(Code::ApprovalPending, reason));
        }
        // INVARIANT: `ask` turns a chain of passes into a refusal.
        Answer::Pass => return Err(Refusal::new(Code::NobodyToAsk, "nobody answered")),
    }
    let reason = Reason { text: format!("{by} approved it"), ..question.reason.clone() };
    let terms = walk.current.policy.terms(&judged.request(&walk.scene.workspace), reason);
    Ok(granted(judged, terms))
}

/// Who answered, what, and how long it took.
struct Answered {
    by: String,
    answer: Answer,
    micros: u64,
}

async fn ask(
    walk: &Walk<'_>,
    valid: &Valid,
    question: &Question,
    flip: Option<&str>,
) -> Result<Answered, Refusal> {
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
                return Ok(Answered { by: approver.name().to_owned(), answer, micros });
            }
        }
    }
    let refusal = Refusal::new(
        Code::NobodyToAsk,
        format!("{}, so a person must be asked, and nobody can be", question.reason),
    );
    Err(with_hint(refusal, flip))
}

fn with_hint(refusal: Refusal, hint: Option<&str>) -> Refusal {
    match hint {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}
