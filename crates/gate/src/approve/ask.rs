//! The approver chain: hooks first, then each approver, all before one deadline.

use super::{ApprovalAnswer, ApprovalRequest, Approver};
use crate::call_context::PipelineContext;
use crate::hook::{self, HookAnswer, HookCall, HookDecision, HookEvent, refusal_for};
use crate::record_builder::RecordBuilder;
use crate::stage::judge::JudgedCall;
use crate::stage::settle::PromptLock;
use crate::stage::validate::ValidatedCall;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;
use toolgate_proto::{ApprovalCard, ApprovalQuestion, CardContent, Code, Event, GrantScope, Refusal, Stage};

/// An approver's or a hook's answer.
pub(crate) struct ReceivedAnswer {
    /// The name of the approver or hook, for records.
    pub(crate) by: String,
    /// The same for messages.
    pub(crate) answered_by: String,
    pub(crate) answer: ApprovalAnswer,
    pub(crate) micros: u64,
}

/// Asks hooks, then approvers, until one does not pass. `diff` is what the call would change.
pub(crate) async fn ask(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    judged: &JudgedCall,
    question: &ApprovalQuestion,
    diff: Option<String>,
) -> Result<ReceivedAnswer, Refusal> {
    let started = Instant::now();
    let deadline = tokio::time::Instant::now() + context.gate.approval_timeout;
    let micros = || u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    let approvers = &context.snapshot.approvers;
    if let Some((hook, answer)) = ask_hooks(context, record, judged, question).await? {
        let (by, answered_by) = (format!("hook: {hook}"), format!("hook `{hook}`"));
        return Ok(ReceivedAnswer { by, answered_by, answer, micros: micros() });
    }
    if !approvers.is_empty() {
        let request = build_request(context, judged, question, diff);
        let asked = || Event::Asked {
            call: context.call.id.clone(),
            question: Box::new(question.clone()),
            card: Box::new(request.card.clone()),
        };
        context.gate.event_bus.publish(asked);
        // However this ends, the question is withdrawn where it is still shown.
        let _withdrawn = request.cancel.clone().drop_guard();
        for approver in approvers.iter() {
            match ask_approver(context, approver, &request, deadline).await? {
                ApprovalAnswer::Pass => {}
                ApprovalAnswer::Lost { why } => {
                    // A channel that is lost because the call was cancelled is not the approver's failure.
                    let lost = async { Err(Refusal::new(Code::ApprovalLost, why)) };
                    return context.await_unless_stopped(Stage::Settle, lost).await;
                }
                answer @ (ApprovalAnswer::Once
                | ApprovalAnswer::Session { .. }
                | ApprovalAnswer::Always { .. }
                | ApprovalAnswer::Revise { .. }
                | ApprovalAnswer::No { .. }
                | ApprovalAnswer::Later) => {
                    let (by, answered_by) = (approver.name().to_owned(), approver.description().to_owned());
                    return Ok(ReceivedAnswer { by, answered_by, answer, micros: micros() });
                }
            }
        }
    }
    let reason = format!("{}; this needs approval, and no approver is available", question.reason);
    let refusal = Refusal::new(Code::ApprovalUnavailable, reason);
    Err(match &judged.judgement.flip {
        Some(flip) => refusal.hint(flip),
        None => refusal,
    })
}

fn build_request(
    context: &PipelineContext<'_>,
    judged: &JudgedCall,
    question: &ApprovalQuestion,
    diff: Option<String>,
) -> ApprovalRequest {
    let valid = &judged.screened.valid;
    let input = valid.input().clone();
    let commands: Vec<String> = judged.judgement.parts.iter().map(|part| part.text.clone()).collect();
    let questions = context.call_context.session.state::<PromptLock>().questions();
    let mut scopes = Vec::new();
    // Also the last call of a session is offered it while other calls wait for an answer.
    let is_last = context.is_last_call && !questions.position().has_next();
    if !is_last {
        scopes.push(GrantScope::Session);
    }
    if context.gate.grant_store.is_some() {
        scopes.push(GrantScope::Project);
    }
    let content = CardContent::new(&input, &scopes).with_diff(diff.as_deref()).with_commands(&commands);
    let card = ApprovalCard::new(question, content);
    let call_context = context.call_context.clone();
    let mut request =
        ApprovalRequest::new(context.call.id.clone(), call_context, question.clone(), card, input);
    request.queue = questions;
    request.requires_user = valid.identity().requires_interaction;
    request.flip = judged.judgement.flip.clone();
    request.cancel = context.cancel.child_token();
    request
}

async fn ask_approver(
    context: &PipelineContext<'_>,
    approver: &Arc<dyn Approver>,
    request: &ApprovalRequest,
    deadline: tokio::time::Instant,
) -> Result<ApprovalAnswer, Refusal> {
    let asking = AssertUnwindSafe(async { approver.ask(request).await }).catch_unwind();
    let asking = async { Ok(tokio::time::timeout_at(deadline, asking).await) };
    match context.await_unless_stopped(Stage::Settle, asking).await? {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => Err(Refusal::new(
            Code::ApprovalLost,
            format!("approver `{}` crashed, so the answer is no", approver.name()),
        )),
        Err(_) => Err(Refusal::new(
            Code::ApprovalTimedOut,
            format!("{} gave no answer in time", approver.description()),
        )),
    }
}

/// PermissionRequest hooks answer before a user is disturbed. The first that decides counts.
/// A hook's yes does not count where a rule or the tool itself requires the user. Returns its name with its answer.
async fn ask_hooks(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    judged: &JudgedCall,
    question: &ApprovalQuestion,
) -> Result<Option<(String, ApprovalAnswer)>, Refusal> {
    let valid = &judged.screened.valid;
    let hooks = context.snapshot.hooks.iter();
    for hook in hooks.filter(|hook| hook.handles(HookEvent::PermissionRequest, valid.identity())) {
        let Some(answer) = ask_hook(context, record, hook.as_ref(), judged, question).await? else {
            continue;
        };
        let by = hook.name().to_owned();
        match answer.decision {
            Some(HookDecision::Deny | HookDecision::Defer) => {
                return Ok(Some((by, ApprovalAnswer::No { message: answer.reason })));
            }
            Some(HookDecision::Allow) if !requires_user(valid, question) => {
                let yes = match answer.updated_input {
                    Some(input) => ApprovalAnswer::Revise { input },
                    None if answer.remember.is_empty() => ApprovalAnswer::Once,
                    None => ApprovalAnswer::Session { rules: answer.remember },
                };
                return Ok(Some((by, yes)));
            }
            Some(HookDecision::Allow | HookDecision::Ask) | None => {}
        }
    }
    Ok(None)
}

/// Runs one hook. `None` where it failed and its failure does not matter.
async fn ask_hook(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    hook: &dyn hook::Hook,
    judged: &JudgedCall,
    question: &ApprovalQuestion,
) -> Result<Option<HookAnswer>, Refusal> {
    let valid = &judged.screened.valid;
    let (event, intent) = (HookEvent::PermissionRequest, &judged.intent);
    let call = HookCall {
        question: Some(question),
        ..HookCall::new(context, event, valid.identity(), valid.input(), intent)
    };
    let running = async { Ok(hook::run_hook(&context.gate.event_bus, hook, call).await) };
    let ran = context.await_unless_stopped(Stage::Settle, running).await?;
    let mut mark = ran.mark;
    if let Ok(answer) = &ran.result
        && answer.decision == Some(HookDecision::Allow)
        && requires_user(valid, question)
    {
        mark.detail = Some("its consent does not count: a rule or the tool requires the user".to_owned());
    }
    record.update_record(|record| record.hooks.push(mark));
    let answer = match ran.result {
        Ok(answer) => answer,
        Err(failure) => return refusal_for(hook, &failure).map_or(Ok(None), Err),
    };
    record.apply_hook_answer(hook.name(), &answer);
    Ok(Some(answer))
}

fn requires_user(valid: &ValidatedCall, question: &ApprovalQuestion) -> bool {
    question.explicit || valid.identity().requires_interaction
}
