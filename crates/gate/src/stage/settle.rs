//! settle: an allow becomes a permit, a deny a refusal, and an ask a question to somebody.

use super::judge::JudgedCall;
use super::screen::ScreenedCall;
use super::validate::{ValidatedCall, validate_object};
use crate::approve::{ApprovalAnswer, ReceivedAnswer, ask};
use crate::permit::Permit;
use crate::pipeline::CallState;
use tokio::sync::{Mutex, MutexGuard};
use toolgate_proto::{
    ApprovalQuestion, ApprovalRecord, Code, Intent, PathFacts, Refusal, Terms, Verdict, VerdictReason,
};

/// A call that may run.
pub(crate) struct GrantedCall {
    pub(crate) permit: Permit,
    pub(crate) valid: ValidatedCall,
    pub(crate) intent: Intent,
    pub(crate) facts: PathFacts,
}

pub(crate) enum SettleOutcome {
    Granted(Box<GrantedCall>),
    /// The approver changed the input: judge it again.
    Revised(ScreenedCall),
    /// The rules changed while another question was being asked: judge it again, this one may be answered.
    PolicyChanged(Box<ScreenedCall>),
}

/// Whoever holds this has the person's ear. A person is asked one question at a time in each session.
#[derive(Default)]
pub(crate) struct PromptLock(Mutex<()>);

impl PromptLock {
    /// Waits until nobody else is asking. True if somebody was.
    pub(crate) async fn acquire(&self) -> (MutexGuard<'_, ()>, bool) {
        match self.0.try_lock() {
            Ok(ear) => (ear, false),
            Err(_) => (self.0.lock().await, true),
        }
    }
}

/// How deep a question may stand inside the answering of another: whoever answers may call a tool, which may have to
/// be asked about, but two who ask about each other must not go on for ever.
const MAX_PROMPT_DEPTH: usize = 1;

tokio::task_local! {
    /// Set while this task answers a question, to how many questions it stands in.
    static ANSWERING: usize;
}

/// Asks, with the person's ear; whoever answers with the help of a tool has it already.
async fn ask_with_prompt_lock(
    walk: &mut CallState<'_>,
    judged: &JudgedCall,
    question: &ApprovalQuestion,
) -> Result<ApprovalPromptOutcome, Refusal> {
    let depth = ANSWERING.try_with(|depth| *depth).unwrap_or(0);
    if depth > MAX_PROMPT_DEPTH {
        return Err(Refusal::new(
            Code::NobodyToAsk,
            "this question stands in the answering of another of its kind",
        ));
    }
    let ear = walk.call_context.session.state::<PromptLock>();
    let _held = if depth == 0 {
        let (held, waited) = walk.await_unless_stopped(async { Ok(ear.acquire().await) }).await?;
        if waited && walk.refresh_policy() {
            return Ok(ApprovalPromptOutcome::PolicyChanged);
        }
        Some(held)
    } else {
        None
    };
    let asking = ask(walk, &judged.screened.valid, &judged.intent, question, &judged.judgement);
    Ok(ApprovalPromptOutcome::Answer(ANSWERING.scope(depth + 1, asking).await?))
}

enum ApprovalPromptOutcome {
    Answer(ReceivedAnswer),
    /// The rules changed while this question waited for its turn.
    PolicyChanged,
}

pub(crate) async fn settle(walk: &mut CallState<'_>, judged: JudgedCall) -> Result<SettleOutcome, Refusal> {
    let settled = match judged.judgement.verdict.clone() {
        Verdict::Allow(terms) => grant_call(judged, terms),
        Verdict::Deny(reason) => {
            let refusal = Refusal::new(reason.code, reason.to_string());
            return Err(with_hint(refusal, judged.judgement.flip.as_deref()));
        }
        Verdict::Ask(question) => {
            if let Some(turn) = &mut walk.schedule {
                turn.release_slot();
            }
            match ask_with_prompt_lock(walk, &judged, &question).await? {
                ApprovalPromptOutcome::Answer(answered) => apply_answer(walk, judged, &question, answered)?,
                ApprovalPromptOutcome::PolicyChanged => {
                    return Ok(SettleOutcome::PolicyChanged(Box::new(judged.screened)));
                }
            }
        }
    };
    if matches!(settled, SettleOutcome::Granted(_)) {
        walk.acquire_slot().await?;
    }
    Ok(settled)
}

fn grant_call(judged: JudgedCall, terms: Terms) -> SettleOutcome {
    let JudgedCall { screened, intent, facts, .. } = judged;
    SettleOutcome::Granted(Box::new(GrantedCall {
        permit: Permit::issue(terms),
        valid: screened.valid,
        intent,
        facts,
    }))
}

/// Does what somebody answered.
fn apply_answer(
    walk: &mut CallState<'_>,
    judged: JudgedCall,
    question: &ApprovalQuestion,
    ReceivedAnswer { by, answer, micros }: ReceivedAnswer,
) -> Result<SettleOutcome, Refusal> {
    let mut said = |answer: &str| {
        walk.record.set_approval(ApprovalRecord { by: by.clone(), answer: answer.to_owned(), micros });
    };
    match answer {
        ApprovalAnswer::Once => said("once"),
        ApprovalAnswer::Session { rules } if is_offered(question, &rules) => {
            said("session");
            walk.gate.grant(&rules, &walk.call_context.workspace.cwd);
        }
        ApprovalAnswer::Always { rules } if is_offered(question, &rules) => {
            said("always");
            remember_rules(walk, &rules);
        }
        ApprovalAnswer::Session { .. } | ApprovalAnswer::Always { .. } => said("once"),
        // Whoever echoes the input approves it as it is.
        ApprovalAnswer::Revise { input } if input == *judged.screened.valid.input() => said("once"),
        ApprovalAnswer::Revise { input } => {
            said("revise");
            walk.record.update_record(|record| record.revisions.push(format!("approver: {by}")));
            let valid = validate_object(judged.screened.valid.tool, input)?;
            walk.record.set_input(valid.input());
            walk.hook_subject = Some(super::finish::HookSubject::new(&valid, &walk.current));
            return Ok(SettleOutcome::Revised(ScreenedCall { valid, opinions: judged.screened.opinions }));
        }
        ApprovalAnswer::No { message } => {
            said("no");
            let refusal = Refusal::new(Code::Declined, format!("{by} said no"));
            return Err(with_hint(refusal, message.as_deref()));
        }
        ApprovalAnswer::Later => {
            said("later");
            let reason = format!("{}, so {by} was handed the question", question.reason);
            return Err(Refusal::new(Code::ApprovalPending, reason));
        }
        // INVARIANT: `ask` turns a chain of passes and a lost channel into a refusal.
        ApprovalAnswer::Pass | ApprovalAnswer::Lost { .. } => {
            return Err(Refusal::new(Code::NobodyToAsk, "nobody answered"));
        }
    }
    let reason = VerdictReason { text: format!("{by} approved it"), ..question.reason.clone() };
    let terms = walk.current.policy.terms(&judged.request(&walk.call_context.workspace), reason);
    Ok(grant_call(judged, terms))
}

fn with_hint(refusal: Refusal, hint: Option<&str>) -> Refusal {
    match hint {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}

/// Never more than what was shown: rules that were not offered count for this call only.
fn is_offered(question: &ApprovalQuestion, rules: &[String]) -> bool {
    let shown = |rule: &String| question.suggestions.iter().any(|suggestion| suggestion.rule == *rule);
    !rules.is_empty() && rules.iter().all(shown)
}

/// Keeps rules for good, and counts them at once. Where they cannot be kept, the session remembers them.
fn remember_rules(walk: &mut CallState<'_>, rules: &[String]) {
    let workspace = &walk.call_context.workspace;
    let kept = match &walk.gate.grant_store {
        Some(keeper) => keeper.write_rules(rules, workspace),
        None => Err("there is nowhere to keep it".to_owned()),
    };
    walk.gate.grant(rules, &workspace.cwd);
    walk.messages.push(match kept {
        Ok(place) => format!("remembered in {place}; `toolgate grants` lists and revokes"),
        Err(problem) => format!("this counts for the session only: {problem}"),
    });
}
