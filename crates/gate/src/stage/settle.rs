//! settle: an allow becomes a permit, a deny a refusal, and an ask a question to the approvers.

use super::guard::check_before_question;
use super::judge::JudgedCall;
use super::screen::ScreenedCall;
use super::validate::{ValidatedCall, validate_object};
use crate::approve::{ApprovalAnswer, QuestionCounter, QuestionTicket, ReceivedAnswer, ask};
use crate::call_context::{CallPolicy, PipelineContext};
use crate::permit::Permit;
use crate::record_builder::RecordBuilder;
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard};
use toolgate_policy::Policy;
use toolgate_proto::{
    ApprovalQuestion, ApprovalRecord, Code, Intent, PathFacts, Refusal, Stage, Terms, Verdict, VerdictReason,
};

/// How many approval prompts may be open around a question. An approver may answer with the help of a tool, and that
/// tool may need approval; two tools that ask about each other must not go on for ever.
const MAX_PROMPT_DEPTH: usize = 1;

/// A call that may run.
pub(crate) struct GrantedCall {
    pub(crate) permit: Permit,
    pub(crate) valid: ValidatedCall,
    pub(crate) intent: Intent,
    pub(crate) facts: PathFacts,
    /// The policy that judged it: what is hidden from the run follows from the same rules.
    pub(crate) policy: Arc<Policy>,
}

/// What became of a verdict.
pub(crate) enum SettleOutcome {
    /// The call may run.
    Granted(Box<GrantedCall>),
    /// The approver changed the input: it must be judged as it is now.
    Revised(Box<ScreenedCall>),
    /// The rules changed while another question was open, and may answer this one: judge it again under the new ones.
    PolicyChanged(Box<ScreenedCall>, CallPolicy),
}

/// Serializes the prompts of one session: a user is asked one question at a time.
#[derive(Default)]
pub(crate) struct PromptLock {
    lock: Mutex<()>,
    questions: Arc<QuestionCounter>,
}

impl PromptLock {
    /// Waits until no other prompt is open. True if one was.
    pub(crate) async fn acquire(&self) -> (MutexGuard<'_, ()>, bool) {
        match self.lock.try_lock() {
            Ok(guard) => (guard, false),
            Err(_) => (self.lock.lock().await, true),
        }
    }

    /// The questions of the session that are open or wait for the lock.
    pub(crate) fn questions(&self) -> Arc<QuestionCounter> {
        Arc::clone(&self.questions)
    }
}

/// Settles a verdict. `ticket` counts the question of this call from the first verdict that asks until the call is
/// settled, also while it is judged again.
pub(crate) async fn settle(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    judged: JudgedCall,
    ticket: &mut Option<QuestionTicket>,
) -> Result<SettleOutcome, Refusal> {
    match judged.judgement.verdict.clone() {
        Verdict::Allow(terms) => Ok(grant_call(judged, terms)),
        Verdict::Deny(reason) => {
            let refusal = Refusal::new(reason.code.unwrap_or(Code::DeniedByRule), reason.to_string());
            Err(with_hint(refusal, judged.judgement.flip.as_deref()))
        }
        Verdict::Ask(question) if context.never_asks => {
            // The advice to add a rule must not end in a refusal by the tool itself.
            check_before_question(context, &judged).await?;
            let refusal = Refusal::new(
                Code::ApprovalUnavailable,
                format!("{}, and this call may not ask", question.reason),
            );
            Err(with_hint(refusal, judged.judgement.flip.as_deref()))
        }
        Verdict::Ask(question) => {
            let lock = context.call_context.session.state::<PromptLock>();
            let depth = context.call_context.prompt_depth();
            if depth > MAX_PROMPT_DEPTH {
                return Err(Refusal::new(
                    Code::ApprovalUnavailable,
                    "this question came up while another of its kind was being answered",
                ));
            }
            // Before an approver is asked, and also where there is none: a call that the tool itself would refuse needs
            // no answer, and the advice to add a rule would end in that refusal. Before the question is counted too, so
            // that the prompts of other calls announce none that never comes.
            let mut diff = check_before_question(context, &judged).await?;
            // A tool that is asked for help while a prompt is open must not wait for that prompt.
            let _guard = if depth == 0 {
                let ticket = ticket.get_or_insert_with(|| lock.questions.expect_call());
                ticket.open();
                let acquiring = async { Ok(lock.acquire().await) };
                let (guard, waited) = context.await_unless_stopped(Stage::Settle, acquiring).await?;
                if waited && let Some(newer) = context.newer_policy(&judged.policy) {
                    return Ok(SettleOutcome::PolicyChanged(Box::new(judged.screened), newer));
                }
                if waited {
                    // The calls before it may have changed files.
                    let checked = check_before_question(context, &judged).await;
                    diff = checked.inspect_err(|_| ticket.withdraw())?;
                }
                Some(guard)
            } else {
                None
            };
            let answer = ask(context, record, &judged, &question, diff).await?;
            apply_answer(context, record, judged, &question, answer)
        }
    }
}

/// Issues the one permit of the call.
fn grant_call(judged: JudgedCall, terms: Terms) -> SettleOutcome {
    let JudgedCall { screened, intent, facts, policy, .. } = judged;
    let permit = Permit::issue(terms);
    let policy = policy.effective;
    SettleOutcome::Granted(Box::new(GrantedCall { permit, valid: screened.valid, intent, facts, policy }))
}

/// Turns the answer of an approver into a permit, a revised call or a refusal.
fn apply_answer(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    judged: JudgedCall,
    question: &ApprovalQuestion,
    ReceivedAnswer { by, answered_by, answer, micros }: ReceivedAnswer,
) -> Result<SettleOutcome, Refusal> {
    let mut set_answer = |answer: &str| {
        let (rules, rules_file) = (Vec::new(), None);
        record.set_approval(ApprovalRecord::new(by.clone(), answer, micros).with_rules(rules, rules_file));
    };
    match answer {
        ApprovalAnswer::Once => set_answer("once"),
        ApprovalAnswer::Session { rules } if is_offered(question, &rules) => {
            set_answer("session");
            context.gate.grant(&rules, &context.call_context.workspace.cwd);
            record.set_added_rules(rules, None);
        }
        ApprovalAnswer::Always { rules } if is_offered(question, &rules) => {
            set_answer("always");
            remember_rules(context, record, rules);
        }
        ApprovalAnswer::Session { .. } | ApprovalAnswer::Always { .. } => set_answer("once"),
        // An approver that echoes the input approves it as it is.
        ApprovalAnswer::Revise { input } if input == *judged.screened.valid.input() => set_answer("once"),
        ApprovalAnswer::Revise { input } => {
            set_answer("revise");
            record.update_record(|record| record.revisions.push(format!("approver: {by}")));
            let valid = validate_object(judged.screened.valid.tool, input)?;
            record.set_input(&valid);
            let revised = ScreenedCall { valid, opinions: judged.screened.opinions };
            return Ok(SettleOutcome::Revised(Box::new(revised)));
        }
        ApprovalAnswer::No { message } => {
            set_answer("no");
            let refusal = Refusal::new(Code::Declined, format!("declined by {answered_by}"));
            return Err(with_hint(refusal, message.as_deref()));
        }
        ApprovalAnswer::Later => {
            set_answer("later");
            let reason = format!("{}, and the question was handed to {answered_by}", question.reason);
            return Err(Refusal::new(Code::ApprovalPending, reason));
        }
        // INVARIANT: `ask` turns a chain of passes and a lost channel into a refusal.
        ApprovalAnswer::Pass | ApprovalAnswer::Lost { .. } => {
            return Err(Refusal::new(Code::ApprovalUnavailable, "no approver answered"));
        }
    }
    let rule = question.reason.rule.clone();
    let reason = VerdictReason::allowing(format!("{answered_by} approved it")).with_rule(rule);
    let terms = judged.policy.effective.terms(&judged.request(&context.call_context.workspace), reason);
    Ok(grant_call(judged, terms))
}

/// Adds a hint to a refusal, if there is one.
fn with_hint(refusal: Refusal, hint: Option<&str>) -> Refusal {
    match hint {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}

/// Never more than what was shown: rules that were not offered count for this call only.
fn is_offered(question: &ApprovalQuestion, rules: &[String]) -> bool {
    let shown = |rule: &String| question.suggestions.iter().any(|suggestion| suggestion.offers(rule));
    !rules.is_empty() && rules.iter().all(shown)
}

/// Writes rules to the grant store, and applies them at once. Where they cannot be written, they last for the session.
fn remember_rules(context: &PipelineContext<'_>, record: &mut RecordBuilder, rules: Vec<String>) {
    let workspace = &context.call_context.workspace;
    let written = match &context.gate.grant_store {
        Some(store) => store.write_rules(&rules, workspace),
        None => Err("there is no file for remembered rules".to_owned()),
    };
    context.gate.grant(&rules, &workspace.cwd);
    record.add_message(match &written {
        Ok(place) => format!("remembered in {place}; `toolgate grants` lists and revokes"),
        Err(problem) => format!("this counts for the session only: {problem}"),
    });
    record.set_added_rules(rules, written.ok());
}
