//! settle: an allow becomes a permit, a deny a refusal, and an ask a question to somebody.

use super::judge::Judged;
use super::screen::ScreenedCall;
use super::validate::{Valid, accept};
use crate::approve::{Answer, ReceivedAnswer, ask};
use crate::permit::Permit;
use crate::pipeline::Walk;
use tokio::sync::{Mutex, MutexGuard};
use toolgate_proto::{Approval, Code, Intent, PathFacts, Question, Reason, Refusal, Terms, Verdict};

/// A call that may run.
pub(crate) struct Granted {
    pub(crate) permit: Permit,
    pub(crate) valid: Valid,
    pub(crate) intent: Intent,
    pub(crate) facts: PathFacts,
}

pub(crate) enum SettleOutcome {
    Granted(Box<Granted>),
    /// The approver changed the input: judge it again.
    Revised(ScreenedCall),
    /// The rules changed while another question was being asked: judge it again, this one may be answered.
    Overtaken(Box<ScreenedCall>),
}

/// Whoever holds this has the person's ear. A person is asked one question at a time in each session.
#[derive(Default)]
pub(crate) struct PromptLock(Mutex<()>);

impl PromptLock {
    /// Waits until nobody else is asking. True if somebody was.
    pub(crate) async fn get(&self) -> (MutexGuard<'_, ()>, bool) {
        match self.0.try_lock() {
            Ok(ear) => (ear, false),
            Err(_) => (self.0.lock().await, true),
        }
    }
}

/// How deep a question may stand inside the answering of another: whoever answers may call a tool, which may have to
/// be asked about, but two who ask about each other must not go on for ever.
const DEEPEST: usize = 1;

tokio::task_local! {
    /// Set while this task answers a question, to how many questions it stands in.
    static ANSWERING: usize;
}

/// Asks, with the person's ear; whoever answers with the help of a tool has it already.
async fn ask_with_prompt_lock(
    walk: &mut Walk<'_>,
    judged: &Judged,
    question: &Question,
) -> Result<Heard, Refusal> {
    let depth = ANSWERING.try_with(|depth| *depth).unwrap_or(0);
    if depth > DEEPEST {
        return Err(Refusal::new(
            Code::NobodyToAsk,
            "this question stands in the answering of another of its kind",
        ));
    }
    let ear = walk.scene.session.state::<PromptLock>();
    let _held = if depth == 0 {
        let (held, waited) = walk.within(async { Ok(ear.get().await) }).await?;
        if waited && walk.catch_up() {
            return Ok(Heard::Overtaken);
        }
        Some(held)
    } else {
        None
    };
    let asking = ask(walk, &judged.screened.valid, &judged.intent, question, &judged.judgement);
    Ok(Heard::Answer(ANSWERING.scope(depth + 1, asking).await?))
}

enum Heard {
    Answer(ReceivedAnswer),
    /// The rules changed while this question waited for its turn.
    Overtaken,
}

pub(crate) async fn settle(walk: &mut Walk<'_>, judged: Judged) -> Result<SettleOutcome, Refusal> {
    let settled = match judged.judgement.verdict.clone() {
        Verdict::Allow(terms) => granted(judged, terms),
        Verdict::Deny(reason) => {
            let refusal = Refusal::new(reason.code, reason.to_string());
            return Err(with_hint(refusal, judged.judgement.flip.as_deref()));
        }
        Verdict::Ask(question) => {
            if let Some(turn) = &mut walk.turn {
                turn.release_slot();
            }
            match ask_with_prompt_lock(walk, &judged, &question).await? {
                Heard::Answer(answered) => obey(walk, judged, &question, answered)?,
                Heard::Overtaken => return Ok(SettleOutcome::Overtaken(Box::new(judged.screened))),
            }
        }
    };
    if matches!(settled, SettleOutcome::Granted(_)) {
        walk.sit_down().await?;
    }
    Ok(settled)
}

fn granted(judged: Judged, terms: Terms) -> SettleOutcome {
    let Judged { screened, intent, facts, .. } = judged;
    SettleOutcome::Granted(Box::new(Granted {
        permit: Permit::issue(terms),
        valid: screened.valid,
        intent,
        facts,
    }))
}

/// Does what somebody answered.
fn obey(
    walk: &mut Walk<'_>,
    judged: Judged,
    question: &Question,
    ReceivedAnswer { by, answer, micros }: ReceivedAnswer,
) -> Result<SettleOutcome, Refusal> {
    let mut said = |answer: &str| {
        walk.trail.answered(Approval { by: by.clone(), answer: answer.to_owned(), micros });
    };
    match answer {
        Answer::Once => said("once"),
        Answer::Session { rules } if offered(question, &rules) => {
            said("session");
            walk.gate.grant(&rules, &walk.scene.workspace.cwd);
        }
        Answer::Always { rules } if offered(question, &rules) => {
            said("always");
            keep(walk, &rules);
        }
        Answer::Session { .. } | Answer::Always { .. } => said("once"),
        // Whoever echoes the input approves it as it is.
        Answer::Revise { input } if input == *judged.screened.valid.input() => said("once"),
        Answer::Revise { input } => {
            said("revise");
            walk.trail.note(|record| record.revisions.push(format!("approver: {by}")));
            let valid = accept(judged.screened.valid.tool, input)?;
            walk.trail.read(valid.input());
            walk.told = Some(super::finish::Told::about(&valid, &walk.current));
            return Ok(SettleOutcome::Revised(ScreenedCall { valid, opinions: judged.screened.opinions }));
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
        // INVARIANT: `ask` turns a chain of passes and a lost channel into a refusal.
        Answer::Pass | Answer::Lost { .. } => {
            return Err(Refusal::new(Code::NobodyToAsk, "nobody answered"));
        }
    }
    let reason = Reason { text: format!("{by} approved it"), ..question.reason.clone() };
    let terms = walk.current.policy.terms(&judged.request(&walk.scene.workspace), reason);
    Ok(granted(judged, terms))
}

fn with_hint(refusal: Refusal, hint: Option<&str>) -> Refusal {
    match hint {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
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
