//! The chain: hooks first, then each approver, all before one deadline.

use super::{ApprovalAnswer, ApprovalRequest, Approver};
use crate::hook::{self, HookCall, HookDecision, HookEvent, refusal_for};
use crate::ledger::sha256_hex;
use crate::pipeline::CallState;
use crate::stage::validate::ValidatedCall;
use futures_util::FutureExt;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;
use toolgate_policy::Judgement;
use toolgate_proto::{ApprovalQuestion, Code, Event, Intent, Refusal};

/// Somebody's answer.
pub(crate) struct ReceivedAnswer {
    pub(crate) by: String,
    pub(crate) answer: ApprovalAnswer,
    pub(crate) micros: u64,
}

/// Asks, until somebody does not pass.
pub(crate) async fn ask(
    walk: &mut CallState<'_>,
    valid: &ValidatedCall,
    intent: &Intent,
    question: &ApprovalQuestion,
    judgement: &Judgement,
) -> Result<ReceivedAnswer, Refusal> {
    let started = Instant::now();
    let deadline = tokio::time::Instant::now() + walk.gate.approval_timeout;
    let micros = || u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    if let Some((by, answer)) = ask_hooks(walk, valid, intent, question).await? {
        return Ok(ReceivedAnswer { by, answer, micros: micros() });
    }
    let approvers = Arc::clone(&walk.current.approvers);
    if !approvers.is_empty() {
        let request = build_request(walk, valid, question, judgement);
        walk.gate
            .event_bus
            .publish(|| Event::Asked { call: walk.call.id.clone(), question: Box::new(question.clone()) });
        // Whatever ends this, the question is withdrawn wherever it is still shown.
        let _withdrawn = request.cancel.clone().drop_guard();
        for approver in approvers.iter() {
            match ask_approver(walk, approver, &request, deadline).await? {
                ApprovalAnswer::Pass => {}
                ApprovalAnswer::Lost { why } => {
                    // A channel that is lost because the call was called off is not the approver's failure.
                    return walk
                        .await_unless_stopped(async { Err(Refusal::new(Code::ApprovalLost, why)) })
                        .await;
                }
                answer @ (ApprovalAnswer::Once
                | ApprovalAnswer::Session { .. }
                | ApprovalAnswer::Always { .. }
                | ApprovalAnswer::Revise { .. }
                | ApprovalAnswer::No { .. }
                | ApprovalAnswer::Later) => {
                    return Ok(ReceivedAnswer { by: approver.name().to_owned(), answer, micros: micros() });
                }
            }
        }
    }
    let refusal = Refusal::new(
        Code::NobodyToAsk,
        format!("{}, so a person must be asked, and nobody can be", question.reason),
    );
    Err(match &judgement.flip {
        Some(flip) => refusal.hint(flip),
        None => refusal,
    })
}

fn build_request(
    walk: &CallState<'_>,
    valid: &ValidatedCall,
    question: &ApprovalQuestion,
    judgement: &Judgement,
) -> ApprovalRequest {
    let input = valid.input().clone();
    let commands: Vec<String> = judgement.parts.iter().map(|part| part.text.clone()).collect();
    ApprovalRequest {
        id: toolgate_files::generate_id("ask_"),
        call: walk.call.id.clone(),
        session: walk.call_context.session.id().clone(),
        question: question.clone(),
        wants_a_person: valid.identity().requires_interaction,
        input_sha256: sha256_hex(Value::Object(input.clone()).to_string().as_bytes()),
        input,
        diff: valid.prepared.preview(&walk.call_context),
        // A line that is one command is shown already.
        parts: if commands.len() > 1 { commands } else { Vec::new() },
        flip: judgement.flip.clone(),
        cancel: walk.cancel.child_token(),
    }
}

async fn ask_approver(
    walk: &CallState<'_>,
    approver: &Arc<dyn Approver>,
    request: &ApprovalRequest,
    deadline: tokio::time::Instant,
) -> Result<ApprovalAnswer, Refusal> {
    let asking = AssertUnwindSafe(async { approver.ask(request).await }).catch_unwind();
    let asking = async { Ok(tokio::time::timeout_at(deadline, asking).await) };
    match walk.await_unless_stopped(asking).await? {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => Err(Refusal::new(
            Code::ApprovalLost,
            format!("approver `{}` crashed, so the answer is no", approver.name()),
        )),
        Err(_) => {
            Err(Refusal::new(Code::ApprovalTimedOut, format!("`{}` gave no answer in time", approver.name())))
        }
    }
}

/// PermissionRequest hooks answer before anybody is disturbed. The first that decides is heard.
/// A hook's yes does not count where a rule or the tool itself demands a person.
async fn ask_hooks(
    walk: &mut CallState<'_>,
    valid: &ValidatedCall,
    intent: &Intent,
    question: &ApprovalQuestion,
) -> Result<Option<(String, ApprovalAnswer)>, Refusal> {
    let hooks = Arc::clone(&walk.current.hooks);
    for hook in hooks.iter().filter(|hook| hook.handles(HookEvent::PermissionRequest, valid.identity())) {
        let call = HookCall {
            moment: HookEvent::PermissionRequest,
            call: &walk.call.id,
            tool: valid.identity(),
            input: valid.input(),
            intent,
            mode: walk.current.policy.mode(),
            context: &walk.call_context,
            question: Some(question),
            result: None,
            ran_for: None,
        };
        let telling =
            walk.await_unless_stopped(async { Ok(hook::run_hook(hook.as_ref(), call).await) }).await?;
        let demanded = question.explicit || valid.identity().requires_interaction;
        let mut mark = telling.mark;
        if let Ok(answer) = &telling.result
            && answer.decision == Some(HookDecision::Allow)
            && demanded
        {
            mark.detail = Some("its consent does not count: a rule or the tool demands a person".to_owned());
        }
        walk.record.update_record(|record| record.hooks.push(mark));
        let answer = match telling.result {
            Ok(answer) => answer,
            Err(failure) => match refusal_for(hook.as_ref(), &failure) {
                Some(refusal) => return Err(refusal),
                None => continue,
            },
        };
        walk.apply_hook_answer(hook.name(), &answer);
        let by = format!("hook: {}", hook.name());
        match answer.decision {
            Some(HookDecision::Deny | HookDecision::Defer) => {
                return Ok(Some((by, ApprovalAnswer::No { message: answer.reason })));
            }
            Some(HookDecision::Allow) if !demanded => {
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
