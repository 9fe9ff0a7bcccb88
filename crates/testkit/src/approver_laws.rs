//! The laws of asking: only a clear yes is a yes.

use crate::fakes::{Behaviour, Probe, session_in};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use toolgate_gate::{Answer, ApprovalRequest, Approver, CallLimits, Gate, GateParts};
use toolgate_proto::{AbsPath, Code, SourceId, ToolCall};

/// How a [`FakeApprover`] behaves.
#[derive(Debug, Clone, PartialEq)]
pub enum Conduct {
    /// Answers at once.
    Answers(Answer),
    /// Never answers.
    Silent,
    /// Crashes.
    Crashes,
}

/// Somebody who answers as the test wants.
pub struct FakeApprover(pub Conduct);

impl Approver for FakeApprover {
    fn name(&self) -> &str {
        "fake"
    }

    #[expect(clippy::panic, reason = "that is what this fake is for")]
    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        Box::pin(async {
            match &self.0 {
                Conduct::Answers(answer) => answer.clone(),
                Conduct::Silent => std::future::pending().await,
                Conduct::Crashes => panic!("told to crash"),
            }
        })
    }
}

/// Asks through `approver` whether a probe may run, and tells how that ended: the code of the refusal, or none where
/// it ran. Panics where the probe ran without a yes, or a yes did not run it once.
#[expect(clippy::panic, reason = "a broken law must fail the test")]
pub async fn approver_laws(approver: Arc<dyn Approver>, says_yes: bool) -> Option<Code> {
    let root = AbsPath::root();
    let gate = Gate::new(GateParts {
        approvers: vec![approver],
        approval_timeout: Duration::from_millis(20),
        ..GateParts::default()
    });
    let probe = Probe::new("probe", Behaviour::Succeed);
    if let Err(error) = gate.register(SourceId::Sdk, probe.clone()) {
        panic!("{error}");
    }
    let call = ToolCall::new("c", "probe", r#"{"text":"x"}"#);
    let closed = gate.call(&session_in(&root), call, CallLimits::default()).await;
    if probe.runs() != usize::from(says_yes) {
        panic!("ran {} times, though the answer was {says_yes}", probe.runs());
    }
    closed.result.err().map(|refusal| refusal.code)
}
